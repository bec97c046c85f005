"""A program that handles records by what they say. argv: a file to note its start and end in."""
import json, os, signal, sys, threading, time

def note(text):
    with open(sys.argv[1], "a") as file:
        file.write(f"{text} {os.getpid()}\n")

def stop(*_):
    note("term")
    if os.environ.get("STUBBORN"):
        return
    os._exit(0)

signal.signal(signal.SIGTERM, stop)
note("start")
deaf = os.environ.get("DEAF") and len(open(sys.argv[1]).readlines()) == 1
lock = threading.Lock()

def answer(call, **outcome):
    with lock:
        print(json.dumps({"call": call, **outcome}), flush=True)

def handle(record):
    if deaf:
        return
    call, value, first = record["call"], record.get("value"), record["attempt"] == 1
    if value == "bad":
        answer(call, status=422, type="no-stock", message="none left")
    elif value == "crash" and first:
        time.sleep(0.2)
        os._exit(3)
    elif value == "noise":
        with lock:
            print("this is no JSON", flush=True)
            print(json.dumps({"call": 999999}), flush=True)
            print(json.dumps(["call"]), flush=True)
            print("x" * 3_000_000, flush=True)
        print("a word for the log", file=sys.stderr, flush=True)
        answer(call)
    elif value == "slow":
        time.sleep(0.5)
        answer(call)
    elif value == "hang" and first:
        pass
    elif value == "early" and first:
        answer(call, **{"class": "not-ready", "retry_after": 0.1})
    elif record.get("value_base64"):
        answer(call, **({} if record["value_base64"] == "/wA=" else {"message": "other bytes"}))
    else:
        answer(call)

for line in sys.stdin:
    threading.Thread(target=handle, args=[json.loads(line)], daemon=True).start()
if os.environ.get("STUBBORN"):
    while True:
        time.sleep(1)
note("end of input")
