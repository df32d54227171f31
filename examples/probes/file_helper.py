#!/usr/bin/env python3
"""usage: file_helper.py FILE [ADDRESS]

A helper for hangscope's probe exec: that serves a file as a device's memory, from ADDRESS on (0). In place of
Memory put what reaches your device: a debugger's library, a PCIe BAR. docs/probes.md has the protocol."""
import os
import sys


class Memory:
    def __init__(self, path, begin):
        self.file = open(path, "r+b", buffering=0)
        self.begin = begin
        self.size = os.path.getsize(path)

    def seek(self, address, size):
        if not self.begin <= address <= address + size <= self.begin + self.size:
            raise ValueError(f"no {size} bytes at {address:#x}")
        self.file.seek(address - self.begin)

    def read(self, address, size):
        self.seek(address, size)
        return self.file.read(size)

    def write(self, address, data):
        self.seek(address, len(data))
        self.file.write(data)

    def alive(self):
        return "unknown"  # "live" or "dead", where that can be told


def serve(memory, requests, answers):
    answers.write(f"hangscope-probe 1\nrange {memory.begin:#x} {memory.size}\nready\n".encode())
    answers.flush()
    for line in requests:
        word, *numbers = line.decode().split()
        numbers = [int(number, 0) for number in numbers]
        data = requests.read(numbers[1]) if word == "write" else b""
        try:
            if word == "read":
                read = memory.read(*numbers)
                answers.write(b"ok %d\n" % len(read) + read)
            elif word == "write":
                memory.write(numbers[0], data)
                answers.write(b"ok 0\n")
            elif word == "alive":
                answers.write(memory.alive().encode() + b"\n")
            else:
                answers.write(b"error no such request\n")
        except (ValueError, OSError) as error:
            answers.write(f"error {error}\n".encode())
        answers.flush()


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    serve(Memory(sys.argv[1], int(sys.argv[2], 0) if len(sys.argv) == 3 else 0), sys.stdin.buffer, sys.stdout.buffer)
