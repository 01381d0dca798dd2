"""Reads a file of one of Rashomon's formats with somebody else's reader: `validate.py FORMAT FILE [SCHEMA]`.

Prints what was read as one line, and ends with 1 and the faults where the reader does not accept the file.
"""

import json
import sys
import unicodedata


def perfetto(path):
    """By the definitions that Perfetto publishes: known fields only, slices that nest, flows that have two ends."""
    from google.protobuf.unknown_fields import UnknownFieldSet
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2

    trace = perfetto_trace_pb2.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    faults = []
    tracks, open_slices, flows = {}, {}, {}
    slices = findings = 0
    last = {}

    def known(message, place):
        for field in UnknownFieldSet(message):
            faults.append(f"{place}: unknown field {field.field_number}")

    for packet in trace.packet:
        known(packet, "packet")
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            known(descriptor, "track")
            tracks[descriptor.uuid] = descriptor
            continue
        if not packet.HasField("track_event"):
            faults.append("a packet without a track or an event")
            continue
        event = packet.track_event
        known(event, "event")
        if event.track_uuid not in tracks:
            faults.append(f"track {event.track_uuid} is not described")
        if packet.timestamp < last.get(event.track_uuid, 0):
            faults.append(f"track {event.track_uuid}: time goes back to {packet.timestamp}")
        last[event.track_uuid] = packet.timestamp
        stack = open_slices.setdefault(event.track_uuid, [])
        if event.type == event.TYPE_SLICE_BEGIN:
            stack.append(event.name)
            slices += 1
        elif event.type == event.TYPE_SLICE_END:
            if not stack:
                faults.append(f"track {event.track_uuid}: an end without a begin")
            else:
                stack.pop()
        elif event.type == event.TYPE_INSTANT:
            findings += "finding" in event.categories
        else:
            faults.append(f"an event of type {event.type}")
        for flow in event.flow_ids:
            flows.setdefault(flow, []).append("from")
        for flow in event.terminating_flow_ids:
            flows.setdefault(flow, []).append("to")
    faults += [f"open at the end: {names}" for names in open_slices.values() if names]
    faults += [f"flow {flow}: {ends}" for flow, ends in flows.items() if ends != ["from", "to"]]
    threads = sum(descriptor.HasField("thread") for descriptor in tracks.values())
    if not threads or not slices:
        faults.append("no thread or no slice")
    return f"{threads} threads, {slices} slices, {len(flows)} flows, {findings} accesses of findings", faults


def junit(path):
    import junitparser

    suites = junitparser.JUnitXml.fromfile(path)
    cases = [case for suite in suites for case in suite]
    failed = sum(any(isinstance(one, junitparser.Failure) for one in case.result) for case in cases)
    faults = [] if cases else ["no test case"]
    for suite in suites:
        if suite.tests != len(list(suite)):
            faults.append(f"{suite.tests} tests announced, {len(list(suite))} there")
    return f"{len(cases)} cases, {failed} failed", faults


def report(path, schema):
    import jsonschema

    with open(schema) as file:
        schema = json.load(file)
    with open(path) as file:
        document = json.load(file)
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    faults = [error.message for error in validator(schema).iter_errors(document)]
    return f"{len(document.get('findings', []))} findings", faults


def printed(path, wanted):
    import pypdf

    pages = pypdf.PdfReader(path).pages
    # Lines break anywhere on paper, and letters are joined.
    text = unicodedata.normalize("NFKC", "".join(page.extract_text() for page in pages))
    text = "".join(text.split())
    with open(wanted) as file:
        lines = [line.strip() for line in file if line.strip()]
    faults = [f"not on paper: {line}" for line in lines if "".join(line.split()) not in text]
    return f"{len(lines)} texts on {len(pages)} pages", faults


def main():
    kind, arguments = sys.argv[1], sys.argv[2:]
    read = {"perfetto": perfetto, "junit": junit, "report": report, "printed": printed}[kind]
    try:
        said, faults = read(*arguments)
    except Exception as error:  # Whatever a reader raises is its way to refuse.
        said, faults = "", [f"{type(error).__name__}: {error}"]
    if faults:
        print("; ".join(faults[:5]))
        sys.exit(1)
    print(said)


main()
