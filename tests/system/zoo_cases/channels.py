"""Programs of Go 1.19 that wait for channels, wait groups and conditions (zoo/go/channels.go). A long run asks them."""
from zoo_cases import DEADLOCK

DEFAULTS = {"build": ("go/channels.go", "go", "build"), "restless": True, "age": 1}
PLAIN = {"build": ("go/channels.go", "go", "build", "-gcflags=all=-N -l")}
STRIPPED = {"build": ("go/channels.go", "go", "build", "-ldflags=-s -w")}
PIE = {"build": ("go/channels.go", "go", "build", "-buildmode=pie")}
HANGS = [
    ("results that are collected too late", "collect-too-late server", DEADLOCK, "collectTooLate square channels.go"),
    ("results that are collected too late beside a heartbeat", "collect-too-late heartbeat", DEADLOCK, "collectTooLate square channels.go"),
    ("both send first", "both-send-first server", DEADLOCK, "sendThenReceive channels.go"),
    ("never closed", "never-closed server", DEADLOCK, "sumUp neverClosed"),
    ("wait group, one too many", "one-too-many server", DEADLOCK, "oneTooMany"),
    ("one result too few", "one-result-too-few heartbeat", DEADLOCK, "oneResultTooFew"),
    ("range over too few", "range-over-too-few server", DEADLOCK, "rangeOverTooFew"),
    ("actors crosswise", "actors server", DEADLOCK, "actor.*run"),
    ("slots nested", "slots-nested server", DEADLOCK, "nested slotsNested"),
    ("pipeline without a reader", "pipeline-without-reader heartbeat", DEADLOCK, "stage pipelineWithoutReader"),
    ("select of two", "select-of-two server", DEADLOCK, "selectOfTwo"),
    ("channel and lock", "channel-and-lock server", DEADLOCK, "askWithLock answerWithLock tableLock"),
    ("context that nobody cancels", "never-cancelled server", DEADLOCK, "waitForDone neverCancelled"),
    ("condition without a signal", "condition-without-signal server", DEADLOCK, "box.*take"),
    ("request without an answer", "handler none", DEADLOCK, "main.answer"),
    ("global channels crosswise", "globals heartbeat", DEADLOCK, "produceGlobally consumeGlobally"),
    ("two of many", "beside server", DEADLOCK, "sendThenReceive"),
    ("both send first, not optimised", "both-send-first server", DEADLOCK, "sendThenReceive", PLAIN),
    ("results that are collected too late, stripped", "collect-too-late server", DEADLOCK, "collectTooLate square", STRIPPED),
    ("results that are collected too late, position-independent", "collect-too-late server", DEADLOCK, "collectTooLate square", PIE),
]
CONTROLS = [
    ("pool without work", "idle-pool server"),
    ("for ever, by a channel", "forever-channel server"),
    ("for ever, by a channel that is nil", "forever-nil server"),
    ("for ever, by a wait group", "forever-wait-group heartbeat"),
    ("results that came too late", "abandoned none"),
    ("pool that nobody closed", "forgotten-pool none"),
    ("until a signal", "until-signal none"),
    ("computes", "computer server", {"cpu": True}),
    ("asks again and again", "spinner server", {"cpu": True}),
    ("reads a connection", "connection none"),
    ("reads a pipe", "pipe server"),
    ("waits for a child", "child none"),
    ("answers go over a registry", "registry server"),
    ("closed by a finalizer", "finalizer none"),
    ("closed by a finalizer of what is lost", "finalizer-alone heartbeat"),
    ("condition that a sleeper signals", "condition server"),
    ("pipeline", "pipeline server", {"cpu": True}),
    ("slots", "slots server", {"cpu": True}),
    ("large heap", "big-heap server"),
    *((f"timer, {how}", f"timer-{how} none") for how in ("after", "after-func", "context", "ticker", "sleep")),
    *((f"sleeper has it, {how}", f"sleeper-{how} server") for how in
      ("argument", "struct", "slice", "map", "interface", "method", "defer", "defer-in-loop", "channel", "array", "pointer", "generic", "sync-map")),
    *((f"sleeper has it, {how}, not optimised", f"sleeper-{how} server", PLAIN) for how in ("argument", "defer", "array", "pointer")),
]
