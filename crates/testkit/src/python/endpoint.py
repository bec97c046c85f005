"""An endpoint that answers by script. argv: port (0: any) or the path of a Unix socket, then the script as JSON.

The script maps a record's value, or its beginning up to a colon, to a list of answers, the last of which holds for
ever; "*" is for all others. An answer: {"status": 200, "headers": {...}, "body": "...", "delay": seconds, "date": seconds}.
Each request is told on stdout as a line of JSON, with everything that came, and so is each answer before it is sent.
"""
import base64, hashlib, hmac, json, socketserver, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

place, script = sys.argv[1], json.loads(sys.argv[2])
lock, calls = threading.Lock(), {}


def verified(secret, headers, path, body):
    t, v1 = (part.split("=", 1)[1] for part in headers["redrive-signature"].split(","))
    id, tombstone = headers.get("ce-id", ""), headers.get("redrive-tombstone", "false")
    good = hmac.new(secret, f"{t}\nPOST\n{path}\n{id}\n{tombstone}\n".encode() + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(good, v1) and abs(time.time() - int(t)) < 300


class Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        at = time.time()
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if "secret" in script and not verified(script["secret"].encode(), self.headers, self.path, body):
            return self.answer({"status": 401, "body": "the signature is wrong"})
        value = body.decode("latin-1")
        with lock:
            count = calls[value] = calls.get(value, 0) + 1
            told = {"at": at, "path": self.path, "headers": self.headers.items(), "attempt": count}
            told["body"] = base64.b64encode(body).decode()
            print(json.dumps(told), flush=True)
        answers = script.get(value) or script.get(value.split(":")[0]) or script.get("*") or [{}]
        answer = answers[min(count, len(answers)) - 1]
        time.sleep(answer.get("delay", 0))
        with lock:
            # By its headers: batches have no id of their own.
            told = {"answered": self.headers.get("ce-id", ""), "status": answer.get("status", 200)}
            print(json.dumps(told), flush=True)
        self.answer(answer)

    def answer(self, answer):
        body, now = answer.get("body", "").encode(), time.time()
        self.send_response_only(answer.get("status", 200))
        # The same moment for both: a second that ends between them would make the wait a second longer.
        self.send_header("date", self.date_time_string(now))
        for name, text in answer.get("headers", {}).items():
            self.send_header(name, text)
        if answer.get("date"):
            self.send_header("retry-after", self.date_time_string(now + answer["date"]))
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

    def address_string(self):
        return ""


class Quiet:
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass  # Whoever called has gone.


class Tcp(Quiet, ThreadingHTTPServer):
    pass


class Socket(Quiet, socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    pass


server = Tcp(("127.0.0.1", int(place)), Endpoint) if place.isdigit() else Socket(place, Endpoint)
print(json.dumps({"port": server.server_address[1] if place.isdigit() else 0}), flush=True)
server.serve_forever()
