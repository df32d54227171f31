"""The report's timeline and lists in a headless Chromium, driven by real input events, and how long they take."""
import collections

import report_flows
import report_oddities
import report_pages
from report_browser import ReportCase
from support import main

SHIFT = 8
MOST_MS = 16  # of a redraw: a frame, where the screen shows 60 in a second


class ReportInput(ReportCase):
    def range(self, page):
        page.frame()
        return page.value(
            "(({from, to}) => [Number(from), Number(to)])(document.getElementById('timeline-range').dataset)"
        )

    def whole(self, page):
        page.click("[aria-label='Show the whole time']")
        return self.range(page)

    def test_zoom_by_wheel_drag_keys_and_buttons(self):
        page = self.page(report_pages.device_deadlock)
        whole = self.whole(page)
        x, y = page.middle("#timeline-canvas")
        left = page.value("document.getElementById('timeline-canvas').getBoundingClientRect().left")
        wide = page.value("document.getElementById('timeline-canvas').clientWidth")
        pointed = lambda view: view[0] + (x - left - 180) / (wide - 180) * (view[1] - view[0])
        # The page's own scrolling is left alone until the timeline has the focus.
        page.value("document.activeElement.blur()")
        page.wheel(x, y, down=-120)
        self.assertEqual(self.range(page), whole)
        x, y = page.middle("#timeline-canvas")
        page.click_at(x, y)
        page.wheel(x, y, down=-240)
        closer = self.range(page)
        self.assertLess(closer[1] - closer[0], 0.7 * (whole[1] - whole[0]))
        self.assertAlmostEqual(pointed(closer), pointed(whole), delta=10)
        page.drag((x, y), (x - 200, y))
        moved = self.range(page)
        self.assertAlmostEqual(moved[0] - closer[0], 200 / (wide - 180) * (closer[1] - closer[0]), delta=100)
        page.key("ArrowLeft")
        self.assertLess(self.range(page)[0], moved[0])
        before = self.range(page)
        page.key("+")
        after = self.range(page)
        self.assertAlmostEqual(after[1] - after[0], (before[1] - before[0]) / 2, delta=1)
        page.click("[aria-label='Zoom out']")
        self.assertAlmostEqual(self.range(page)[1] - self.range(page)[0], before[1] - before[0], delta=1)
        page.click("#timeline-canvas")
        page.key("0")
        self.assertEqual(self.range(page), whole)
        # Shift-drag: exactly what was marked.
        x, y = page.middle("#timeline-canvas")
        page.drag((x - 100, y), (x + 100, y), SHIFT)
        marked = self.range(page)
        self.assertAlmostEqual(marked[1] - marked[0], 200 / (wide - 180) * (whole[1] - whole[0]), delta=100)
        page.click("[aria-label='Show the trigger']")
        page.click("#timeline-canvas")
        for _ in range(60):
            page.key("+")
        view = self.range(page)
        self.assertAlmostEqual(view[1] - view[0], 8, delta=0.01)
        page.key("0")

    def test_pointing_and_keys_tell_events_as_text(self):
        page = self.page(report_pages.tasks)
        self.whole(page)
        x, y = page.middle("#timeline-canvas")
        top = page.value("document.getElementById('timeline-canvas').getBoundingClientRect().top")
        left = page.value("document.getElementById('timeline-canvas').getBoundingClientRect().left")
        wide = page.value("document.getElementById('timeline-canvas').clientWidth")
        # Behind the end of the first row's events it is halted.
        page.mouse("mouseMoved", left + 180 + (wide - 180) * 0.8, top + 26 + 10)
        page.frame()
        self.assertEqual(
            page.text("#timeline-readout"),
            "CPU 0 · halted assert: queue full · 2.00 ms, from −2.000\u202f000 ms to 0 ns",
        )
        page.click_at(left + 50, top + 30)
        page.key("End")
        page.key(".")
        self.assertRegex(page.text("#timeline-readout"), r"^CPU 0 · −2\.100.000 ms · switch +consumer +\(kernel\)$")
        page.key(",")
        self.assertRegex(page.text("#timeline-readout"), r"^CPU 0 · −2\.200.000 ms · switch +producer +\(kernel\)$")
        page.key("ArrowDown")
        self.assertRegex(page.text("#timeline-readout"), r"^producer · −2\.200.000 ms · lock +mutex A +\(kernel\)$")

    def test_gaps_and_stale_parts_are_told(self):
        page = self.page(report_pages.device_deadlock)
        whole = self.whole(page)
        left, top, wide = page.value(
            "(r => [r.left, r.top, r.width])(document.getElementById('timeline-canvas').getBoundingClientRect())"
        )
        at = lambda time: left + 180 + (wide - 180) * (time - whole[0]) / (whole[1] - whole[0])
        page.mouse("mouseMoved", at(-1.4e6), top + 26 + 41 + 10)
        page.frame()
        self.assertIn("gap of 200 µs: overwritten, 212 records", page.text("#timeline-readout"))
        page.mouse("mouseMoved", at(-1.9e6), top + 26 + 3 * 41 + 10)
        page.frame()
        self.assertIn("stale", page.text("#timeline-readout"))
        # What is drawn there differs from what is beside it.
        begin, end = (int(at(time) - left) for time in (-1.45e6, -1.25e6))
        pixels = page.value(
            f"[...document.getElementById('timeline-canvas').getContext('2d').getImageData({begin}, {26 + 41 + 6}, {end - begin + 40}, 1).data]"
        )
        ground = lambda row: sum(row[i : i + 3] == [0xF7, 0xF2, 0xF2] for i in range(0, 160, 4))
        self.assertGreater(ground(pixels[:160]), 15)
        self.assertEqual(ground(pixels[-160:]), 0)
        legend = page.text(".legend ul").split("\n")
        self.assertEqual(
            [word.strip() for word in legend if word.strip()],
            ["running", "waiting", "stale", "gap", "function", "idle", "events"],
        )

    def colours(self, page, x, y, wide, high):
        """Those of a part of the timeline, as #rrggbb, each with how often it is there."""
        bytes_of = page.value(
            f"[...document.getElementById('timeline-canvas').getContext('2d').getImageData({int(x)}, {int(y)}, {int(wide)}, {int(high)}).data]"
        )
        return collections.Counter("#%02x%02x%02x" % tuple(bytes_of[i : i + 3]) for i in range(0, len(bytes_of), 4))

    def test_counters_are_steps_and_told(self):
        page = self.page(report_flows.filling)
        whole = self.whole(page)
        left, top, wide = page.value(
            "(r => [r.left, r.top, r.width])(document.getElementById('timeline-canvas').getBoundingClientRect())"
        )
        at = lambda time: 180 + (wide - 180) * (time - whole[0]) / (whole[1] - whole[0])
        first = 26 + 3 + 15  # of the first row, where its counters begin
        violet = "#7a5195"
        # 8 at the top, 4 in the middle, 0 at the bottom; between two values a line up.
        for time, line in ((-5e5, 0), (-1.25e6, 6), (-1.55e6, 11)):
            for y in range(12):
                seen = self.colours(page, at(time), first + 1 + y, 1, 1)[violet]
                self.assertEqual(seen, y == line, (time, y))
        self.assertGreaterEqual(self.colours(page, at(-1e6) - 1, first + 1, 3, 12)[violet], 6 + 2)
        # Of many in a pixel all heights between the least and the most; behind them the last one holds.
        self.assertEqual(self.colours(page, at(-1.18e6), first + 28 + 1, 80, 12)[violet], 80 * 12)
        self.assertEqual(self.colours(page, at(-5e5), first + 28 + 1, 1, 12)[violet], 1)
        self.assertEqual(self.colours(page, at(-5e5), first + 28 + 1 + 6, 1, 1)[violet], 1)
        page.mouse("mouseMoved", left + at(-5e5), top + first + 5)
        page.frame()
        self.assertEqual(
            page.text("#timeline-readout"), "core 0 writer · cb1 fill 8 from −1.000\u202f000 ms on · between 0 and 8"
        )
        page.mouse("mouseMoved", left + at(-1.55e6), top + first + 14 + 5)
        page.frame()
        self.assertIn("pages 4 from", page.text("#timeline-readout"))
        self.assertIn("counters", page.text(".legend ul"))

    def test_who_ends_the_selected_wait_is_an_arrow(self):
        page = self.page(report_flows.filling)
        whole = self.whole(page)
        left, top, wide = page.value(
            "(r => [r.left, r.top, r.width])(document.getElementById('timeline-canvas').getBoundingClientRect())"
        )
        at = lambda time: 180 + (wide - 180) * (time - whole[0]) / (whole[1] - whole[0])
        high = page.value("document.querySelector('.spacer').offsetHeight")
        accent = "#1d5fbf"
        second = 26 + 2 * 3 + 15 + 3 * 14 + 10  # top of the second row
        between = lambda: self.colours(page, at(0) - 4, 26 + 3 + 15 + 2, 8, second - 26 - 20)[accent]
        beyond = lambda: self.colours(page, at(0) - 4, second + 14, 8, 20)[accent]
        page.click_at(left + at(-1.8e6), top + 26 + 8)  # it runs
        page.frame()
        self.assertEqual((between(), beyond()), (0, 0))
        page.click_at(left + at(-5e5), top + 26 + 8)
        page.mouse("mouseMoved", left + 50, top + high - 2)
        page.frame()
        self.assertGreater(between(), 20, "no arrow from the reader to the writer")
        self.assertEqual(beyond(), 0)
        page.click_at(left + at(-5e5), top + 26 + 8)
        self.assertIn("waited for: cb1 ← core 1 reader", page.text("#timeline-readout"))
        # By keyboard the row below: its wait is for another.
        page.key("ArrowDown")
        page.frame()
        self.assertIn("waited for: cb2 ← core 2 idle", page.text("#timeline-readout"))
        self.assertEqual(between(), 0)
        self.assertGreater(beyond(), 10)
        # A wait that somebody ended: who woke it.
        page.click_at(left + at(-1.7e6), top + second + 8)
        self.assertIn("wakes core 1 reader ← core 0 writer", page.text("#timeline-readout"))

    def test_the_window_is_shown_first_and_the_whole_on_demand(self):
        page = self.open(report_oddities.standing)
        self.assertEqual(self.range(page), [-1.1e6, 1e5])
        self.assertEqual(self.whole(page), [-5.1e6, 1e5])
        page.close()

    def test_how_a_core_stands_lasts_until_the_end(self):
        page = self.page(report_oddities.standing)
        whole = self.whole(page)
        left, top, wide = page.value(
            "(r => [r.left, r.top, r.width])(document.getElementById('timeline-canvas').getBoundingClientRect())"
        )
        at = lambda time: left + 180 + (wide - 180) * (time - whole[0]) / (whole[1] - whole[0])
        for time, words in (
            (-1e5, "core 1 · waiting waits for table · 800 µs, from −800.000 µs to 0 ns"),
            (-8.5e5, "core 1 · running · 150 µs, from −950.000 µs to −800.000 µs"),
        ):
            page.mouse("mouseMoved", at(time), top + 26 + 10)
            page.frame()
            self.assertEqual(page.text("#timeline-readout"), words)

    def test_rows_are_filtered(self):
        page = self.page(report_oddities.long_names)
        high = page.value("document.querySelector('.spacer').offsetHeight")
        self.assertGreater(high, 1024 * 20)
        page.click("#row-filter")
        page.type("pe77")
        page.frame()
        self.assertLess(page.value("document.querySelector('.spacer').offsetHeight"), high / 50)

    def test_lines_are_searched(self):
        page = self.page(report_pages.stream_loop)
        page.click("h1")
        page.key("/")
        self.assertEqual(page.value("document.activeElement.className"), "stream-search")
        page.type("ROUND 9999")
        self.assertEqual(page.text(".stream-hits"), "11 of 11 lines")
        self.assertIn("round 99999", page.text(".line.current"))
        page.key("Enter")
        self.assertEqual(page.text(".stream-hits"), "10 of 11 lines")
        self.assertIn("round 99998", page.text(".line.current"))
        for _ in range(9):
            page.key("Enter")
        self.assertEqual(page.text(".stream-hits"), "1 of 11 lines")
        self.assertEqual(page.text(".line.current mark"), "round 9999")
        self.assertRegex(page.text(".line.current"), r"round 9999$")
        page.key("Enter", SHIFT)
        self.assertIn("round 99990", page.text(".line.current"))
        # One core's lines only.
        page.value(
            "(s => { s.value = '1'; s.dispatchEvent(new Event('change')); })(document.querySelector('.stream-core'))"
        )
        self.assertEqual(page.text(".stream-hits"), "3 of 3 lines")
        self.assertEqual(
            page.value("new Set([...document.querySelectorAll('.line .whose')].map(each => each.textContent)).size"), 1
        )
        page.value(
            "(s => { s.value = ''; s.dispatchEvent(new Event('change')); })(document.querySelector('.stream-core'))"
        )
        page.value(
            "(f => { f.value = '26 823'; f.dispatchEvent(new Event('input')); })(document.querySelector('.stream-search'))"
        )
        self.assertEqual(page.text(".line.lost.current"), "— 26 823 bytes were lost: No space left on device —")
        page.value(
            "(f => { f.value = 'no such text'; f.dispatchEvent(new Event('input')); })(document.querySelector('.stream-search'))"
        )
        self.assertEqual(page.text(".stream-hits"), "not found")

    def test_a_hundred_thousand_lines_scroll_smoothly(self):
        page = self.page(report_pages.stream_loop)
        x, y = page.middle(".lines")
        page.value("document.querySelector('.lines').scrollTop = 0")
        page.frame()
        self.assertRegex(page.text(".line"), r"round 0$")
        self.assertLess(page.value("document.querySelectorAll('.line').length"), 60, "more is in the page than is seen")
        for _ in range(3):
            page.wheel(x, y, down=5000)
            page.frame()
        page.wait("document.querySelector('.lines').scrollTop >= 14900")
        page.frame()
        first = page.value("Number(/round (\\d+)$/.exec(document.querySelector('.line').textContent)[1])")
        self.assertAlmostEqual(first, page.value("document.querySelector('.lines').scrollTop") / 18, delta=2)
        took = self.script_ms(
            page, lambda i: page.value(f"document.querySelector('.lines').scrollTop = {i * 150000}"), 10
        )
        self.assertLess(sorted(took)[len(took) // 2], MOST_MS)

    def script_ms(self, page, act, times):
        """The script's own time on its thread for each: a busy machine makes little difference, now and then."""
        page.call("Performance.enable", timeDomain="threadTicks")
        took = []
        for i in range(times):
            before = self.script_s(page)
            act(i)
            page.frame()
            took.append(1000 * (self.script_s(page) - before))
        return took

    @staticmethod
    def script_s(page):
        return next(
            each["value"] for each in page.call("Performance.getMetrics")["metrics"] if each["name"] == "ScriptDuration"
        )

    def test_events_are_found(self):
        page = self.page(report_pages.device_deadlock)
        self.whole(page)
        page.click("h1")
        page.key("e")
        self.assertEqual(page.value("document.activeElement.id"), "event-search")
        page.type("pages=4")
        found = int(page.text("#event-hits").split()[0])
        self.assertGreater(found, 5)
        told = []
        for _ in range(found + 1):
            page.key("Enter")
            told.append(page.text("#timeline-readout"))
        self.assertEqual(len(set(told)), found)
        self.assertEqual(told[found], told[0], "behind the last comes the first")
        self.assertTrue(all("pages=4" in text for text in told), told)
        page.key("Enter", SHIFT)
        self.assertEqual(page.text("#timeline-readout"), told[found - 1])

    def test_a_million_events_stay_smooth(self):
        """Every redraw, each the best of three where the first took too long: what others do to the caches goes, what it costs stays."""
        best, passes = {}, 0
        while passes == 0 or (passes < 3 and max(best.values()) > MOST_MS):
            took = self.redraw_million()
            best = {place: min(ms, best.get(place, ms)) for place, ms in took.items()}
            passes += 1
        times = sorted(best.values())
        page = self.page(report_oddities.million)
        print(
            f"\nscript time of {len(times)} redraws: median {times[len(times) // 2]:.1f} ms, slowest {times[-1]:.1f} ms, "
            f"({max(best, key=best.get)}), best of {passes}; {page.text('#redraw-times')}"
        )
        self.assertGreater(times[len(times) // 2], 0.1, "nothing was drawn")
        self.assertLess(times[-1], MOST_MS, best)
        self.assertEqual(page.text("#headline"), "silent: 16 cores wait")
        self.assertEqual(page.complaints(), [])
        page.click("#event-search")
        page.type("cb=77")
        self.assertEqual(
            page.text("#event-hits").replace("\u00a0", ""), "10992 events"
        )  # 77 and 770 to 779 of a thousand texts
        page.key("Enter")
        self.assertIn("cb=77", page.text("#timeline-readout"))
        self.assertLess(sorted(self.script_ms(page, lambda i: page.key("Enter"), 5))[2], MOST_MS)

    def test_what_is_in_pieces_stays_smooth(self):
        page = self.page(report_oddities.patchy)
        x, y = page.middle("#timeline-canvas")
        page.click_at(x, y)

        def zoom():
            for down in (-400, -400, 400, 400):
                page.wheel(x, y, down=down)
                page.frame()

        slowest = []
        while not slowest or (len(slowest) < 3 and min(slowest) > MOST_MS):
            slowest.append(max(self.browser.frame_times(zoom)))
        print(f"\nscript time of the slowest frame, best of {len(slowest)}: {min(slowest):.1f} ms")
        self.assertLess(min(slowest), MOST_MS)
        # What is short is seen all the same: of pieces that share a pixel there is no ground left.
        self.whole(page)
        left = 180 + 100
        ground = self.colours(page, left, 26 + 8, 300, 1)["#ffffff"]
        self.assertEqual(ground, 0)

    def redraw_million(self):
        """The page anew, with nothing compiled yet: ms of script for each frame of the first drawing, and for each redraw."""
        self.forget(report_oddities.million)
        frames = self.browser.frame_times(lambda: self.page(report_oddities.million).frame())
        took = {f"frame {i} of the first drawing": ms for i, ms in enumerate(frames)}
        page = self.page(report_oddities.million)

        def each(name, act, times):
            for i, ms in enumerate(self.script_ms(page, act, times)):
                took[f"{name} {i}"] = ms

        each("the whole", lambda i: page.click("[aria-label='Show the whole time']"), 1)
        x, y = page.middle("#timeline-canvas")
        each("click", lambda i: page.click_at(x, y), 1)
        each("zoom in", lambda i: page.wheel(x, y, down=-400), 12)
        each("move", lambda i: page.key("ArrowLeft"), 3)
        each("zoom out", lambda i: page.wheel(x, y, down=400), 12)
        each("point", lambda i: page.mouse("mouseMoved", x + i, y), 6)
        return took

    def test_by_keyboard_alone(self):
        page = self.open(report_pages.device_deadlock)
        order = []
        for _ in range(40):
            page.key("Tab")
            order.append(
                page.value(
                    "document.activeElement.id || document.activeElement.getAttribute('aria-label') || document.activeElement.textContent"
                )
            )
        self.assertEqual(order[0], "To the verdict")
        self.assertLess(order.index("Verdict"), order.index("help-button"))
        for earlier, later in (
            ("help-button", "Earlier"),
            ("Earlier", "row-filter"),
            ("row-filter", "timeline-canvas"),
            ("timeline-canvas", "The graph, which may be wider than the page"),
        ):
            self.assertLess(order.index(earlier), order.index(later), order)
        page.click("h1")
        page.key("?")
        self.assertTrue(page.value("document.getElementById('help').open"))
        self.assertIn("find events", page.text("#help"))
        page.key("Escape")
        page.wait("!document.getElementById('help').open")
        page.key("g")
        self.assertEqual(page.value("document.activeElement.id"), "timeline-canvas")
        page.close()


if __name__ == "__main__":
    main()
