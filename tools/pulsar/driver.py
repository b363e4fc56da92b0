"""What tests do to a Pulsar broker, through its own client: one JSON order a line, one JSON answer a line.

{"produce": TOPIC, "messages": [{"value", "key", "properties", "event_time"}], "batch": BOOL, "compression": NAME}
    answers with the ids, as [ledger, entry, batch index]
{"admin": [METHOD, PATH, BODY]}
    answers with the status and the text
"""

import json
import sys
import threading
import urllib.error
import urllib.request

import pulsar

SERVICE, WEB = sys.argv[1:3]
COMPRESSION = {
    None: pulsar.CompressionType.NONE,
    "LZ4": pulsar.CompressionType.LZ4,
    "ZLIB": pulsar.CompressionType.ZLib,
    "ZSTD": pulsar.CompressionType.ZSTD,
    "SNAPPY": pulsar.CompressionType.SNAPPY,
}


def produce(order):
    quiet = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    client = pulsar.Client(SERVICE, logger=quiet, operation_timeout_seconds=30)
    messages = order["messages"]
    producer = client.create_producer(
        order["produce"],
        batching_enabled=order["batch"],
        batching_max_messages=max(2, order.get("batch_max", 1000)),
        batching_max_publish_delay_ms=1000,
        block_if_queue_full=True,
        compression_type=COMPRESSION[order.get("compression")],
    )
    ids, failures, done = [None] * len(messages), [], threading.Semaphore(0)

    def stored(at):
        def callback(result, id):
            if result == pulsar.Result.Ok:
                ids[at] = [id.ledger_id(), id.entry_id(), id.batch_index()]
            else:
                failures.append(str(result))
            done.release()

        return callback

    for at, message in enumerate(messages):
        producer.send_async(
            message["value"].encode(),
            stored(at),
            partition_key=message.get("key"),
            properties=message.get("properties"),
            event_timestamp=message.get("event_time"),
        )
    producer.flush()
    for _ in messages:
        done.acquire()
    client.close()
    return {"ids": ids, "failures": failures}


def admin(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(WEB + "/admin/v2/" + path, data=data, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return {"status": answer.status, "text": answer.read().decode()}
    except urllib.error.HTTPError as error:
        return {"status": error.code, "text": error.read().decode()}


for line in sys.stdin:
    order = json.loads(line)
    try:
        answer = admin(*order["admin"]) if "admin" in order else produce(order)
    except Exception as error:  # told to the test, which fails by it
        answer = {"error": repr(error)}
    print(json.dumps(answer), flush=True)
