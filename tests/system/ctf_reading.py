#!/usr/bin/python3
"""Reads a CTF trace with babeltrace2's Python module, which is Debian's python3's alone: ctf_reading.py TRACE

Prints JSON lines: the environment first, then streams, events and discarded events as babeltrace2 hands them out.
"""
import json
import sys

import bt2


def labels_of(field):
    if not isinstance(field, bt2._EnumerationFieldConst):
        return None
    try:
        return sorted(field.labels)
    except AssertionError:  # what version 2.0.4 does where there is none
        return []


def value_of(value):
    return int(value) if isinstance(value, bt2._SignedIntegerValueConst) else str(value)


def fields_of(structure):
    """Names, values and labels, which only enumerations have."""
    names, values, labels = [], [], []
    for name, field in (structure or {}).items():
        is_text = isinstance(field, bt2._StringFieldConst)
        names.append(name)
        values.append(str(field) if is_text else int(field))
        labels.append(labels_of(field))
    return {"names": names, "values": values, "labels": labels}


def event_of(message):
    event = message.event
    found = {"track": event.stream.id, "time": message.default_clock_snapshot.value, "name": event.name, "cpu": int(event.packet.context_field["cpu_id"])}
    return {**found, **fields_of(event.payload_field), "context": fields_of(event.specific_context_field)}


def discard_of(message):
    return {"track": message.stream.id, "from": message.beginning_default_clock_snapshot.value, "to": message.end_default_clock_snapshot.value,
            "discarded": message.count}


def main():
    told_environment = False
    for message in bt2.TraceCollectionMessageIterator(sys.argv[1]):
        if isinstance(message, bt2._StreamBeginningMessageConst):
            if not told_environment:
                clock = message.stream.cls.default_clock_class
                print(json.dumps({"environment": {name: value_of(value) for name, value in message.stream.trace.environment.items()},
                                  "clock": {"name": clock.name, "description": clock.description, "frequency": clock.frequency, "precision": clock.precision,
                                            "offset": clock.offset.seconds * clock.frequency + clock.offset.cycles, "absolute": clock.origin_is_unix_epoch}}))
                told_environment = True
            print(json.dumps({"stream": message.stream.id}))
        elif isinstance(message, bt2._EventMessageConst):
            print(json.dumps(event_of(message)))
        elif isinstance(message, bt2._DiscardedEventsMessageConst):
            print(json.dumps(discard_of(message)))


main()
