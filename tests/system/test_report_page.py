"""The report's page in a headless Chromium: what it shows of ten kinds of hangs."""
import base64
import re
import subprocess

import report_flows
import report_oddities
import report_pages
from report_browser import MAKER, ReportCase
from support import main


class ReportPage(ReportCase):
    def test_the_verdict_comes_first(self):
        headlines = {
            "device_deadlock": "deadlock, 3 of 4 cores wait for each other",
            "stream_loop": "looping, 3 of 3 cores spin",
            "tasks": "deadlock, 2 tasks hold what the other wants",
            "threads": "deadlock, 2 of 72 threads wait for each other's locks",
            "cpu_starvation": "starved: logger has been ready for 3.00 s, spinner does not give CPU 1 up",
            "corrupted_scope": "corrupt: core 1's mailbox cannot be right",
            "lost_data": "silent: nothing came of 5 cores",
        }
        for make in (*report_pages.ALL, *report_oddities.ALL, report_flows.filling):
            with self.subTest(make.__name__):
                page = self.page(make)
                headline = page.text("#headline")
                if make.__name__ in headlines:
                    self.assertEqual(headline, headlines[make.__name__])
                    self.assertIn(headline, page.value("document.title"))
                top = page.value("document.getElementById('headline').getBoundingClientRect().top + scrollY")
                self.assertLess(top, 200, "the verdict is not above the fold")
                self.assertEqual(page.value("document.querySelector('main > section').id"), "verdict")
                self.assertEqual(page.complaints(), [])

    def test_the_verdict_is_seen_before_the_recording_is_read(self):
        page = self.browser.open("about:blank")
        page.call(
            "Page.addScriptToEvaluateOnNewDocument",
            source="""
            new MutationObserver((_, observer) => {
              if (!document.getElementById('headline')) return;
              observer.disconnect();
              requestAnimationFrame(() => { window.drawn = [document.getElementById('headline').innerText, document.getElementById('timeline') !== null]; });
            }).observe(document, {childList: true, subtree: true});""",
        )
        page.go(self.address(report_pages.device_deadlock))
        page.wait("document.documentElement.dataset.ready === ''")
        self.assertEqual(page.value("window.drawn"), ["deadlock, 3 of 4 cores wait for each other", False])
        self.assertTrue(page.value("document.getElementById('timeline') !== null"))
        page.close()

    def test_what_it_rests_on_and_what_was_lost(self):
        page = self.page(report_pages.device_deadlock)
        self.assertEqual(page.text("#state"), "hang: deadlock")
        self.assertTrue(page.text("#confidence").startswith("certain"))
        self.assertIn("each of these waits is the same in two looks", page.text("#evidence"))
        self.assertIn("nobody says who provides the free slot", page.text("#evidence"))
        self.assertIn("212 records were overwritten", page.text("#lost"))
        self.assertTrue(page.value("document.getElementById('trouble-box').hidden"))
        self.assertIn("720 older events of the snapshot are not in this report", page.text(".legend"))
        lost = self.page(report_oddities.lost_data)
        self.assertEqual(lost.text("#state"), "perhaps a hang: silent")
        self.assertIn("the last 1\u00a0000\u00a0000 counts of 5 cores, limited by core 0", lost.text(".program"))
        self.assertIn("26 823 bytes could not be written", lost.text("#lost"))

    def test_who_waits_for_whom_since_when_and_where(self):
        rows = self.page(report_pages.device_deadlock).value(
            "[...document.querySelectorAll('table.who tbody tr')].map(row => [...row.cells].map(cell => cell.innerText))"
        )
        self.assertEqual(
            rows[0],
            [
                "core 0 reader first to stop cycle".replace(" first", "first").replace(" cycle", "cycle"),
                "‖waiting",
                "cb1",
                "reserve back, cb.c:8",
                "683 µs",
            ],
        )
        self.assertEqual(
            [row[0].removesuffix("cycle") for row in rows[1:]],
            ["core 1 compute", "core 2 writer", "core 3 dispatch", "task logger"],
        )
        # Who stands somewhere without waiting is told of, too.
        rows = self.page(report_pages.stream_loop).value(
            "[...document.querySelectorAll('table.who tbody tr')].map(row => [...row.cells].map(cell => cell.innerText))"
        )
        self.assertEqual(rows[1], ["hart 2", "○silent", "spins in cb_wait_front", "cb_wait_front, cb.c:20", "6.60 s"])
        # Of a thousand a few are shown, the others on demand.
        page = self.page(report_oddities.long_names)
        self.assertEqual(page.value("document.querySelectorAll('table.who tbody tr').length"), 12)
        page.click("#who summary")
        page.wait("document.querySelectorAll('table.who tbody tr').length === 1024")

    def test_the_cycle_is_drawn_and_named(self):
        for make, size, words in (
            (
                report_pages.device_deadlock,
                3,
                "Cycle: core 0 reader waits for core 1 compute waits for core 2 writer waits for core 0 reader.",
            ),
            (report_pages.tasks, 2, "Cycle: producer waits for consumer waits for producer."),
            (report_pages.threads, 2, "Cycle: reader waits for writer waits for reader."),
        ):
            with self.subTest(make.__name__):
                page = self.page(make)
                self.assertEqual(page.value("document.querySelectorAll('#graph path.edge.in-cycle').length"), size)
                self.assertEqual(page.value("document.querySelectorAll('#graph .node.in-cycle').length"), size)
                self.assertEqual(page.text("#graph p"), words)
                self.assertEqual(page.value("document.querySelector('#graph .cycle-word').textContent"), "cycle")
                red = page.value("getComputedStyle(document.querySelector('#graph path.edge.in-cycle')).stroke")
                self.assertEqual(red, "rgb(179, 38, 30)")
        page = self.page(report_pages.device_deadlock)
        self.assertEqual(page.value("document.querySelectorAll('#graph .node .first').length"), 1)
        self.assertEqual(page.value("document.querySelectorAll('#graph path.edge').length"), 5)
        # Nothing lies over something else, and all lies within.
        boxes = page.value(
            "[...document.querySelectorAll('#graph .node rect')].map(r => [r.x, r.y, r.width, r.height].map(v => v.baseVal.value))"
        )
        for i, (x, y, wide, high) in enumerate(boxes):
            self.assertGreaterEqual(min(x, y), 0)
            for other_x, other_y, _, _ in boxes[:i]:
                self.assertTrue(abs(x - other_x) >= wide or abs(y - other_y) >= high, boxes)

    def test_one_hang_of_two_witnesses_is_drawn_once_with_both_names(self):
        page = self.page(report_pages.scope_and_threads)
        self.assertEqual(
            page.value("[...document.querySelectorAll('#graph .node')].map(node => [...node.querySelectorAll('text')].map(text => text.textContent).slice(0, 2))"),
            [["core 0 reader", "thread 4711 reader"], ["core 1 writer", "thread 4712 writer"]],
        )
        self.assertEqual(
            page.text("#graph p"),
            "Cycle: core 0 reader (thread 4711 reader) waits for core 1 writer (thread 4712 writer) waits for core 0 reader (thread 4711 reader).",
        )
        rows = page.value("[...document.querySelectorAll('table.who tbody tr')].map(row => row.cells[0].innerText)")
        self.assertEqual(rows, ["core 0 reader thread 4711 readercycle", "core 1 writer thread 4712 writercycle"])
        lowest = page.value(
            "Math.max(...[...document.querySelectorAll('#graph .node')].map(node => { const box = node.querySelector('rect').getBBox();"
            "return Math.max(...[...node.querySelectorAll('text')].map(text => Number(text.getAttribute('y')))) - box.y - box.height; }))"
        )
        self.assertLess(lowest, 0, "text lies below its box")

    def test_the_cycle_of_a_wide_graph_is_in_view(self):
        page = self.open(report_pages.long_queue)
        seen = "(() => { const box = document.querySelector('#graph .scroll').getBoundingClientRect();"
        seen += "return [...document.querySelectorAll('#graph .node.in-cycle')].map(n => n.getBoundingClientRect())"
        seen += ".every(r => r.left >= box.left && r.right <= box.right); })()"
        self.assertGreater(page.value("document.querySelector('#graph .scroll').scrollWidth"), 1500)
        self.assertTrue(page.wait(seen))

    def test_a_timeline_of_few_rows_needs_no_scroll_bar(self):
        page = self.page(report_pages.device_deadlock)
        room, rows = page.value("(() => { const frame = document.querySelector('.frame'); return [frame.clientHeight, frame.scrollHeight]; })()")
        self.assertEqual(room, rows)

    def test_loops_are_drawn_as_loops(self):
        page = self.page(report_pages.stream_loop)
        self.assertEqual(
            page.value(
                "[...document.querySelectorAll('#loops svg')].map(svg => svg.querySelectorAll('path.turn').length)"
            ),
            [1, 2, 3],
        )
        self.assertEqual(
            page.value("[...document.querySelectorAll('#loops .rounds')].map(text => text.textContent)"),
            ["1\u00a0087\u00a0862", "≥ 1\u00a0086\u00a0862", "1\u00a0085\u00a0862"],
        )
        self.assertIn("cb_reserve_back cb.c:8 0x80000328", page.text("#loops figcaption").replace("  ", " "))
        self.assertIn("; since cycle 284\u00a0564; ", page.text("#loops figcaption"))

    def test_what_little_there_is_comes_first(self):
        page = self.page(report_oddities.findings_only)
        self.assertIn("12024 waits 1.1 s for mutex lock_b, held by 12025", page.text("#verdict #who-says"))
        self.assertIn("the same in 2 looks", page.text("#evidence"))
        printed = page.text("#verdict #last-output")
        self.assertIn("stdout, 31.0 s before the verdict, without an end of line\n\nblock 4711 sent\nGo on? \\x1b[2J", printed)
        self.assertIn("stderr\n\na <b>warning</b>", printed)
        self.assertNotIn("newer hangscope", page.text("#verdict"))
        self.assertEqual(
            page.value("[...document.querySelectorAll('#parts a')].map(link => link.textContent)"),
            ["Verdict", "Findings"],
        )

    def test_last_events_stand_side_by_side_in_time(self):
        page = self.page(report_pages.device_deadlock)
        rows = page.value(
            "[...document.querySelectorAll('table.recent tbody tr')].map(row => [...row.cells].map(cell => cell.innerText))"
        )
        self.assertEqual(len(rows), 61)
        self.assertEqual(
            page.text("table.recent thead").split("\n")[0].split("\t")[:2], ["Time", "core 0 readerfirst to stop"]
        )
        times = [float(re.sub("[^0-9.−]", "", row[0]).replace("−", "-")) for row in rows]
        self.assertEqual(times, sorted(times))
        self.assertTrue(
            page.value(
                "(box => box.scrollTop > 100 && box.scrollTop + box.clientHeight >= box.scrollHeight - 2)(document.querySelector('.recent.scroll'))"
            ),
            "the newest is not in sight",
        )
        for row in rows[:-1]:
            self.assertEqual(sum(cell != "" for cell in row[1:]), 1, row)
        self.assertEqual(rows[-1][1], "trigger: hang: 3 cores wait")
        page.click("#recent button")
        page.wait("document.querySelectorAll('table.recent tbody tr').length === 181")

    def test_faults_threads_and_the_rest(self):
        tasks = self.page(report_pages.tasks)
        self.assertIn("CPU 0: assertion 'used < size' failed", tasks.text("#faults"))
        self.assertRegex(tasks.text("#faults .here"), r"^▶ +42 +assert\(q->used < q->size\);$")
        self.assertEqual(len(tasks.text("#faults pre").rstrip("\n").split("\n")), 7)
        threads = self.page(report_pages.threads)
        self.assertEqual(threads.value("document.querySelectorAll('#threads > details').length"), 61)
        self.assertFalse(threads.value("document.querySelector('#threads > details').open"))
        threads.click("#threads summary")
        self.assertIn("lock_table pipeline.c:15", threads.text("#threads ol").replace("  ", " "))
        device = self.page(report_pages.device_deadlock)
        for part, words in (
            ("kernels", "reader_bmm_tile.cpp"),
            ("stacks", "95 %"),
            ("bus", "no such node"),
            ("debug", "0x00000044"),
            ("words", "tile 1: node (0,0)"),
            ("words", "0x1267"),
            ("words", "As they were when the findings were reported."),
            ("numbers", "1.500 ms"),
            ("numbers", "tile 1: Interrupts"),
            ("run", "qemu-system-riscv32"),
            ("findings", "core 0 waits 0.7 s at CRBW"),
        ):
            self.assertIn(words, device.text("#" + part))
        self.assertNotIn("0x00000231", device.text("#debug"), "of a long ring the newest are enough until somebody asks")
        self.assertEqual(device.text("#debug details details summary"), "8 older ones")
        device.click("#debug details details summary")
        self.assertIn("0x00000231", device.text("#debug"))
        self.assertEqual(
            device.value("[...document.querySelectorAll('#run dt')].map(each => each.textContent)"),
            ["command", "version", "build id", "exit status", "trigger", "window"],
        )

        self.assertIn("hang: 3 cores wait, at −100.000 µs", device.text("#run"))
        self.assertIn('−2.000\u202f000 ms to 0 ns, policy "newest"', device.text("#run"))

    def test_where_it_left_the_healthy_run(self):
        page = self.page(report_pages.cpu_starvation)
        cells = page.value(
            "[...document.querySelectorAll('#divergence details:first-of-type tbody tr')].map(row => [...row.cells].map(cell => cell.innerText))"
        )
        self.assertEqual(
            cells[-3:],
            [
                ["switch to worker 4 schedule"],
                ["first difference switch to logger schedule", "first difference switch to spinner schedule"],
                ["write(1)", ""],
            ],
        )
        self.assertIn("412 steps in common before", page.text("#divergence"))
        # Where nothing is common, there is no difference to be first.
        self.assertEqual(page.value("document.querySelectorAll('#divergence .badge').length"), 2)

    def test_text_of_the_target_stays_text(self):
        page = self.page(report_oddities.hostile)
        self.assertEqual(
            page.value("document.querySelectorAll('img, iframe, main script, link:not([rel=icon])').length"), 0
        )
        self.assertNotEqual(page.value("document.title"), "owned")
        self.assertTrue(page.text("#headline").startswith("<img src=x onerror=\"document.title='owned'\"><script>"))
        self.assertIn(
            "\\x1b[31mred\\x1b]0;t\\x07\\u{202e}gnp.exe\\u{2066}\\u{200b}\\x00\\x9b2J{{7*7}}", page.text("#headline")
        )
        unseen = page.value(
            "(document.documentElement.textContent + [...document.querySelectorAll('[title], [aria-label]')].map(e => e.title + e.ariaLabel).join(''))"
            r".match(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2066-\u2069]/u)"
        )
        self.assertIsNone(unseen)
        self.assertEqual(page.complaints(), [])

    def test_what_is_damaged_or_newer_is_named_and_the_rest_shown(self):
        page = self.page(report_oddities.corrupted_scope)
        named = page.text("#troubles").split("\n")
        self.assertNotIn("whose begin is not in the trace", page.text("#troubles"))
        self.assertIn("whose begin is not in the trace", page.value("document.querySelector('details#notes').textContent"))
        self.assertFalse(page.value("document.querySelector('details#notes').open"))
        for words in (
            "The data is of a newer hangscope than this page, which does not show: hologram.",
            "scope.bin: core 1's mailbox: 'state' is 0xdeadbeef, which is no state",
            "Not shown: tracks[3] is no object.",
            "Not shown: evidence is no list.",
            "Not shown: tracks[1].spans.from is damaged.",
            "Incomplete: of tracks[1].events only 39 are whole.",
            "Damaged: tracks[2].events are not in the order of time; shown as if they were.",
            "Not shown: kernels is no list.",
        ):
            self.assertIn(words, named)
        self.assertIn("whole", page.text("#streams"))
        self.assertIn("cb_reserve_back", page.text("#recent"))
        self.assertEqual(page.text("#state"), "corrupt")

    def test_data_that_is_none_is_said(self):
        for name, text, words in (
            ("cut", '{"headline": "dead', "damaged"),
            ("list", "[1, 2]", "no object"),
            ("empty", "{}", "Nobody reached a verdict on this recording."),
        ):
            with self.subTest(name):
                file = self.folder / f"{name}.html"
                file.write_bytes(
                    subprocess.run([MAKER], input=text.encode(), capture_output=True, timeout=60, check=True).stdout
                )
                page = self.browser.open(file.as_uri())
                page.wait("document.getElementById('loading') === null")
                self.assertIn(words, page.text("main"))
                self.assertEqual(page.complaints(), [])
                page.close()

    def test_long_names_are_cut_and_whole_in_their_titles(self):
        page = self.page(report_oddities.long_names)
        self.assertEqual(
            page.value("document.documentElement.scrollWidth > innerWidth"), False, "the page is wider than the window"
        )
        name = page.value("(e => [e.innerText, e.title.length])(document.querySelector('table.who td code'))")
        self.assertEqual(len(name[0]), 72)
        self.assertEqual(name[1], 1004)
        self.assertIn("1\u00a0024 cores", page.text(".program"))
        self.assertLess(page.value("document.querySelectorAll('*').length"), 30000)

    def test_everything_to_act_on_has_a_name(self):
        roles = {
            "button",
            "image",
            "img",
            "graphics-document",
            "canvas",
            "application",
            "textbox",
            "searchbox",
            "combobox",
            "link",
            "table",
            "figure",
            "region",
            "group",
            "dialog",
            "meter",
            "DisclosureTriangle",
            "navigation",
            "toolbar",
        }
        must = {
            "button",
            "image",
            "img",
            "canvas",
            "application",
            "textbox",
            "searchbox",
            "combobox",
            "link",
            "table",
            "region",
            "dialog",
            "meter",
            "navigation",
            "toolbar",
            "DisclosureTriangle",
        }
        images = []
        for make in (
            report_pages.device_deadlock,
            report_oddities.hostile,
            report_pages.cpu_starvation,
            report_pages.threads,
            report_pages.tasks,
        ):
            with self.subTest(make.__name__):
                page = self.open(make)
                told = page.accessible()
                page.close()  # it would go on telling of every change
                images += [name for role, name in told if role in ("image", "img")]
                self.assertGreater(sum(role in roles for role, _ in told), 15, "the tree is not that of the page")
                self.assertEqual([role for role, name in told if role in must and not re.search(r"\w\w", name)], [])
        self.assertTrue(
            any("core 0 reader waits for core 1 compute (cb1), part of the cycle" in name for name in images), images
        )

    def test_it_prints(self):
        page = self.open(report_pages.device_deadlock)
        page.call("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        page.click("#findings summary")
        self.assertEqual(page.value("document.querySelectorAll('#findings details:not([open])').length"), 1)
        page.value(
            "window.addEventListener('beforeprint', () => { window.printed ="
            "[document.querySelectorAll('details:not([open])').length,"
            " getComputedStyle(document.documentElement).getPropertyValue('--ground')]; })"
        )
        pdf = page.call("Page.printToPDF", printBackground=True, generateDocumentOutline=True, generateTaggedPDF=True)[
            "data"
        ]
        pdf = base64.b64decode(pdf)
        self.assertTrue(pdf.startswith(b"%PDF-"))
        self.assertGreaterEqual(len(re.findall(rb"/Type ?/Page\b", pdf)), 2)
        # The outline is of the headings that are on paper.
        self.assertIn(b"deadlock, 3 of 4 cores wait for each other", pdf[pdf.index(b"/Outlines") :] + pdf)
        self.assertEqual(page.value("window.printed"), [0, "#ffffff"], "all is unfolded, and dark on white")
        page.call("Emulation.setEmulatedMedia", media="print")
        self.assertEqual(
            page.value(
                "[...document.querySelectorAll('#headline, #who, #graph svg, #parts, .tools')]"
                ".filter(e => e.getClientRects().length > 0).map(e => e.id || e.tagName)"
            ),
            ["headline", "who", "svg"],
        )
        page.close()

    def emulate(self, page, scheme):
        """The timeline is drawn anew when the scheme changes. Now and then Chromium does not tell a page of the change."""
        red = "document.getElementById('timeline-canvas').getContext('2d').getImageData(2, 60, 1, 1).data[0]"
        for _ in range(5):
            for each in ("light", "dark") if scheme == "dark" else ("light",):
                page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": each}])
                page.frame()
            try:
                return page.wait(f"{red} > 200" if scheme == "light" else f"{red} < 60", timeout=4)
            except TimeoutError:
                continue
        self.fail(f"the timeline is not drawn anew for the {scheme} scheme")

    def test_light_and_dark(self):
        page = self.open(report_pages.device_deadlock)
        seen = {}
        for scheme in ("light", "dark"):
            self.emulate(page, scheme)
            shades = page.value(
                "(() => { const weights = [0.2126, 0.7152, 0.0722];"
                "const light = c => c.match(/\\d+/g).slice(0, 3).reduce((sum, v, i) => sum + v * weights[i], 0);"
                "const body = getComputedStyle(document.body);"
                "return [light(body.backgroundColor), light(body.color)]; })()"
            )
            seen[scheme] = shades
        self.assertGreater(seen["light"][0], 240)
        self.assertLess(seen["light"][1], 40)
        self.assertLess(seen["dark"][0], 40)
        self.assertGreater(seen["dark"][1], 200)
        page.close()

    def test_it_fits_a_window_of_800_pixels(self):
        page = self.open(report_pages.device_deadlock, width=800, height=700)
        self.assertLessEqual(page.value("document.documentElement.scrollWidth"), 800)
        self.assertLess(page.value("document.querySelector('table.who').getBoundingClientRect().right"), 801)
        page.close()


if __name__ == "__main__":
    main()
