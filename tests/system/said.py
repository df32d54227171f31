"""What `hangscope run` and `hangscope why` said, in one form, and what a test expects of both.

The only code of the matrices that knows what their JSON looks like.
"""
import dataclasses
import datetime
import json
import typing

# Each kind that has a state of another name.
STATE_OF = {"spin": "looping", "lost-wakeup": "starved", "owner-died": "starved", "copied-lock": "starved", "no-writer": "starved", "stopped-child": "starved"}


def read_messages(path):
    """Of a log, the whole lines."""
    return [json.loads(line) for line in path.read_text().rpartition("\n")[0].splitlines()] if path.exists() else []


@dataclasses.dataclass
class Said:
    """A finding of either command, or that there is none."""
    state: str = "-"
    kind: str = "-"
    confidence: str = ""
    hang: bool = False
    subjects: typing.List[str] = dataclasses.field(default_factory=list)  # all that is said of each
    summary: str = ""
    text: str = ""  # that, and all else
    others: typing.List[str] = dataclasses.field(default_factory=list)  # findings of hangs, what they say
    at: typing.Optional[float] = None  # Unix time

    def brief(self):
        return f"{self.state if self.kind == '-' else self.kind} {self.confidence}"


def said_by(finding, **more):
    """Of one of a verdict's findings, or of a verdict that has none."""
    kind = finding.get("kind", finding.get("state"))
    subjects = [json.dumps(subject) for subject in finding.get("subjects", [])]
    return Said(state=finding.get("state", STATE_OF.get(kind, kind)), kind=kind, confidence=finding["confidence"], subjects=subjects, summary=finding["summary"],
                text="\n".join([finding["summary"], *finding.get("lines", [])]), **more)


def said_by_verdict(verdict, findings):
    at = datetime.datetime.fromisoformat(verdict["time"].replace("Z", "+00:00")).timestamp() if "time" in verdict else None
    first, *others = findings or [verdict]
    found = said_by(first, hang=True, at=at, others=[other["summary"] for other in others])
    found.state = verdict["state"]
    return found


def is_of_hang(verdict):
    """Of all of it, or of a part."""
    return verdict["hang"] or verdict["state"] == "partial"


def said_by_run(messages):
    """The last verdict of hangscope run, or of hangscope why of a snapshot of it, that is of a hang; a surer one supersedes
    another. Without any, how it stood last."""
    verdicts = [m for m in messages if m["type"] == "verdict" and is_of_hang(m)]
    if verdicts:
        return said_by_verdict(verdicts[-1], [f for f in verdicts[-1].get("findings", []) if f["confidence"] != "possible"])
    beats = [m for m in messages if m["type"] == "heartbeat"]
    return Said(state=beats[-1]["state"], confidence=beats[-1]["confidence"]) if beats else Said()


def said_by_why(messages):
    """The verdict of hangscope why; what it finds without calling it a hang, that somebody stopped it, counts, too."""
    verdict = next((m for m in messages if m["type"] == "verdict"), None)
    if verdict is None:
        return Said()
    bad = [f for f in verdict.get("findings", []) if f["hang"]]
    return said_by_verdict(verdict, bad) if is_of_hang(verdict) or bad else Said(state=verdict["state"], confidence=verdict["confidence"])


@dataclasses.dataclass
class Expected:
    name: str
    command: str
    kind: str = "-"
    who: typing.List[str] = dataclasses.field(default_factory=list)
    what: typing.List[str] = dataclasses.field(default_factory=list)
    confidence: str = ""
    status: typing.Optional[int] = None  # of a control: with which it ends
    idle: bool = False  # must be called so
    options: typing.Dict = dataclasses.field(default_factory=dict)

    @property
    def is_hang(self):
        return self.kind != "-"

    @property
    def acts(self):
        return self.is_hang and (not self.options.get("partial") or self.options.get("acts", False))

    @property
    def state(self):
        return "partial" if self.options.get("partial") else STATE_OF.get(self.kind, self.kind)

    def differences(self, said, by_run):
        if not self.is_hang:
            silent = not said.hang or (not by_run and said.kind == self.options.get("why"))
            if not silent:
                return [f"{said.brief()}: {said.text}"]
            return [f"state {said.state}, not idle"] if self.idle and said.state not in ("idle", "-") else []
        if not said.hang:
            return [said.brief() if said.kind == "-" else f"only {said.brief()}: {said.text}"]
        wrong = []
        if said.kind != self.kind:
            wrong.append(f"kind {said.kind}")
        # That others print on, hangscope why does not hear.
        if said.state != self.state and (by_run or said.state != STATE_OF.get(self.kind, self.kind)):
            wrong.append(f"state {said.state}")
        if said.confidence != self.confidence:
            wrong.append(said.confidence)
        left = list(said.subjects)
        for word in self.who:
            found = next((subject for subject in left if word in subject), None)
            if found is None:
                wrong.append(f"no {word}")
            else:
                left.remove(found)
        if self.kind == "deadlock" and self.who and left and said.kind == self.kind:
            wrong.append(f"and {len(left)} more")
        everything = said.text + "\n".join(said.subjects)
        wrong += [f"no {word}" for word in self.what if word not in everything]
        if len(said.others) + 1 != self.options.get("findings", 1):
            wrong.append(f"and also: {'; '.join(said.others)}" if said.others else "only one finding")
        behind = self.options.get("behind")
        if behind and not (behind in said.summary and any(word in said.summary for word in self.what)):
            wrong.append(f"no {behind} or no lock in the first line")
        return [f"{', '.join(wrong)}; it said: {said.text}"] if wrong else []
