"""Programs that wait for what they would have to do themselves, or for a prompt that never comes (zoo/reentry.cc)."""
from zoo_cases import DEADLOCK, RETRY

OPTIMISED = {"build": ("reentry.cc", "g++", "-std=c++20", "-O1", "-pthread")}

HANGS = [
    ("static that joins who uses it", "zoo_reentry static-joins", DEADLOCK + ", 2 ", "pool_instance UseThePool ThePool"),
    ("std::call_once of itself beside a server", "once-of-itself", DEADLOCK, "config_once EnsureConfig|InitialiseConfig", OPTIMISED),
    ("mutexes tried crosswise between naps", "zoo_reentry try-crosswise", DEADLOCK + "|" + RETRY, "accounts journal PayIn PayOut", {"restless": True}),
    ("prompt that never comes, poll", "zoo_reentry poll-prompt", DEADLOCK + ", 2 ", "ptmx pts cat AwaitPrompt"),
    ("prompt that never comes, epoll", "zoo_reentry epoll-prompt", DEADLOCK + ", 2 ", "ptmx pts cat EpollPrompt"),
    ("expect and a prompt that never comes", "expect -c 'puts ready; set timeout -1; spawn -noecho cat; expect password:'", DEADLOCK + ", 2 ", "ptmx pts cat expect",
     {"needs": "expect"}),
]

CONTROLS = [
    ("static that joins who is late", "zoo_reentry static-joins-late"),
    ("std::call_once within another one", "once-within", OPTIMISED),
    ("mutex tried while another naps with it", "zoo_reentry try-while-held"),
    ("mutex tried while another reads its input", "zoo_reentry try-while-read", {"stdin": "pipe"}),
    ("prompt and a window's socket", "zoo_reentry poll-prompt-and-socket"),
    ("prompt and input", "zoo_reentry poll-prompt-and-input", {"stdin": "pipe"}),
    ("prompt, for a time", "zoo_reentry poll-prompt-with-time"),
    ("prompt that another thread brings about", "zoo_reentry poll-prompt-while-typed"),
    ("two terminals linked, who links", "zoo_reentry link-terminals", {"ask": "link"}),
    ("two terminals linked, who reads", "zoo_reentry link-terminals", {"ask": "reader"}),
    ("expect, for a time", "expect -c 'puts ready; set timeout 500; spawn -noecho cat; expect password:'", {"needs": "expect"}),
    ("expect and who types", "expect -c 'puts ready; set timeout -1; spawn -noecho cat; interact'", {"needs": "expect", "stdin": "tty"}),
]
