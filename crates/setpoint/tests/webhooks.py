"""Admission and conversion webhooks behind a real TLS server, well-behaved and not.

    webhooks.py KUBECONFIG CERTIFICATE KEY
"""
import base64
import http.server
import json
import ssl
import sys
import threading
import time

from kubernetes import client, config

kubeconfig, certificate, key = sys.argv[1:]
asked, connections = [], set()
depth, gone = threading.Semaphore(3), threading.Event()


class Hook(http.server.BaseHTTPRequestHandler):
    """The path names the behaviour."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if gone.is_set():
            self.close_connection = True
            return
        behaviour = self.path.split("?")[0].strip("/")
        asked.append(behaviour)
        connections.add(self.client_address)
        request = review["request"]
        response = {"uid": request["uid"], "allowed": True}
        if behaviour == "deny":
            response.update(allowed=False, status={"message": "not here", "code": 403})
        elif behaviour == "label":
            patch = [{"op": "add", "path": "/metadata/labels", "value": {"from": "python"}}]
            response.update(patchType="JSONPatch", patch=base64.b64encode(json.dumps(patch).encode()).decode())
        elif behaviour == "redirect":
            return self.reply(307, b"", {"Location": "https://127.0.0.1:%d/yes" % port})
        elif behaviour == "garbage":
            return self.reply(200, b"\x00\xff{{{")
        elif behaviour == "wrong-uid":
            response["uid"] = "another"
        elif behaviour == "hang":
            time.sleep(3)
        elif behaviour == "megabytes":
            return self.flood()
        elif behaviour == "loop" and depth.acquire(blocking=False):
            # It writes what it is asked about: it is asked about that as well.
            try:
                core.create_namespaced_config_map("default", {"metadata": {"generateName": "loop-", "labels": {"do": "loop"}}})
            except client.ApiException:
                pass
        elif behaviour == "convert":
            wanted = request["desiredAPIVersion"]
            response = {"uid": request["uid"], "result": {"status": "Success"},
                        "convertedObjects": [convert(it, wanted) for it in request["objects"]]}
        self.reply(200, json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}).encode())

    def reply(self, code, body, headers={}):
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def flood(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        sent = 0
        try:
            while sent < 1 << 30:
                sent += self.wfile.write(b"[" * (1 << 20))
        except OSError:
            pass
        flooded.append(sent)
        self.close_connection = True


def convert(disk, wanted):
    """v1 calls `size` what v2 calls `amount`."""
    old, new = ("size", "amount") if wanted.endswith("v2") else ("amount", "size")
    spec = disk.get("spec", {})
    if old in spec:
        spec[new] = spec.pop(old)
    disk["apiVersion"] = wanted
    return disk


def refused(code, text, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except client.ApiException as error:
        message = json.loads(error.body)["message"]
        assert error.status == code and text in message, (error.status, message)
        return message
    raise AssertionError("expected a %d: %s" % (code, text))


flooded = []
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(certificate, key)
server.socket = tls.wrap_socket(server.socket, server_side=True)
server.daemon_threads = True
port = server.server_address[1]
threading.Thread(target=server.serve_forever, daemon=True).start()

config.load_kube_config(kubeconfig)
core, registration = client.CoreV1Api(), client.AdmissionregistrationV1Api()
definitions, objects = client.ApiextensionsV1Api(), client.CustomObjectsApi()
trusted = base64.b64encode(open(certificate, "rb").read()).decode()


def hook(behaviour, **more):
    return {"name": behaviour + ".example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 2,
            "clientConfig": {"url": "https://127.0.0.1:%d/%s" % (port, behaviour), "caBundle": trusted},
            "objectSelector": {"matchLabels": {"do": behaviour}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}], **more}


def make(name, do):
    return core.create_namespaced_config_map("default", {"metadata": {"name": name, "labels": {"do": do}}})


behaviours = ["yes", "deny", "redirect", "garbage", "wrong-uid", "megabytes", "loop"]
untrusted = hook("untrusted", clientConfig={"url": "https://127.0.0.1:%d/yes" % port})
at_service = lambda name, port: {"service": {"namespace": "default", "name": name, "port": port, "path": "/deny"}, "caBundle": trusted}
service, empty = hook("service", clientConfig=at_service("hooks", port)), hook("empty", clientConfig=at_service("empty", 443))
registration.create_validating_webhook_configuration(
    {"metadata": {"name": "python"}, "webhooks": [hook(it) for it in behaviours] + [hook("hang", timeoutSeconds=1)] + [untrusted, service, empty]})
registration.create_mutating_webhook_configuration({"metadata": {"name": "python"}, "webhooks": [hook("label")]})

# Those that behave. One connection serves many questions.
for number in range(20):
    make("yes-%d" % number, "yes")
assert asked.count("yes") == 20 and len(connections) <= 2, (len(asked), connections)
assert make("label", "label").metadata.labels == {"from": "python"}
refused(403, 'admission webhook "deny.example.com" denied the request: not here', make, "x", "deny")

# Those that do not: no one is sent elsewhere, waited for in vain, or believed.
asked.clear()
refused(500, 'failed calling webhook "redirect.example.com"', make, "x", "redirect")
assert asked == ["redirect"], asked
refused(500, 'failed calling webhook "garbage.example.com"', make, "x", "garbage")
refused(500, "expected response.uid=", make, "x", "wrong-uid")
refused(500, "context deadline exceeded", make, "x", "hang")
refused(500, 'failed calling webhook "megabytes.example.com"', make, "x", "megabytes")
refused(500, "certificate", make, "x", "untrusted")
asked.clear()
make("loop", "loop")
assert asked.count("loop") == 4, asked
deadline = time.time() + 10
while not flooded and time.time() < deadline:
    time.sleep(0.01)
assert flooded and flooded[0] < 64 << 20, flooded

# A service: it tells where the question goes, its name is what the certificate is for.
refused(500, 'service "hooks" not found', make, "x", "service")
core.create_namespaced_service("default", {"metadata": {"name": "empty"}, "spec": {"ports": [{"port": 443}]}})
refused(500, 'no endpoints available for service "empty"', make, "x", "empty")
core.create_namespaced_service("default", {"metadata": {"name": "hooks"}, "spec": {"type": "ExternalName", "externalName": "localhost"}})
refused(403, 'admission webhook "service.example.com" denied the request: not here', make, "x", "service")

# A custom resource in two versions that only the webhook can tell apart.
def version(name, field, stored):
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {field: {"type": "integer"}}}}}
    return {"name": name, "served": True, "storage": stored, "schema": {"openAPIV3Schema": schema}}


definitions.create_custom_resource_definition({
    "metadata": {"name": "disks.example.com"},
    "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "disks", "kind": "Disk"},
             "versions": [version("v1", "size", True), version("v2", "amount", False)],
             "conversion": {"strategy": "Webhook", "webhook": {
                 "conversionReviewVersions": ["v1"],
                 "clientConfig": {"url": "https://127.0.0.1:%d/convert" % port, "caBundle": trusted}}}}})
disks = lambda version: ("example.com", version, "default", "disks")
body = {"apiVersion": "example.com/v2", "kind": "Disk", "metadata": {"name": "a"}, "spec": {"amount": 7}}
assert objects.create_namespaced_custom_object(*disks("v2"), body)["spec"] == {"amount": 7}
assert objects.get_namespaced_custom_object(*disks("v1"), "a")["spec"] == {"size": 7}
changed = objects.get_namespaced_custom_object(*disks("v1"), "a")
changed["spec"]["size"] = 8
objects.replace_namespaced_custom_object(*disks("v1"), "a", changed)
assert [it["spec"] for it in objects.list_namespaced_custom_object(*disks("v2"))["items"]] == [{"amount": 8}]
gone.set()
server.shutdown()
server.server_close()
refused(500, "conversion webhook for example.com/v1, Kind=Disk failed: Post ", objects.get_namespaced_custom_object, *disks("v2"), "a")
refused(500, 'failed calling webhook "yes.example.com": failed to call webhook: Post ', make, "x", "yes")
print("ok")
