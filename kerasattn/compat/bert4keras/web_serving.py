import http.server
import json
import urllib.parse


class WebServing:
    """Functions as web pages that give JSON, to try them out.

    A page answers {"code": 0, "desc": "succeeded", "data": what the function returned}; code 1 is
    for arguments that are missing or wrong, 2 for errors of the function, and desc says which.
    It runs on Python's own server, and listens to this machine alone if nothing else is said.

    Args:
        host: str, "0.0.0.0" for all that can reach this machine.
        port: int, 0 for any that is free.
        server: not looked at; bert4keras chose among servers by it.

    Example:

    >>> from kerasattn.compat.bert4keras.snippets import WebServing
    >>> web = WebServing(port=8864)
    >>> web.route("/repeat", lambda text, n=1: text * n, {"text": (None, True), "n": (int, False)})
    >>> web.answer("GET", "/repeat", "text=ab&n=2")
    (200, {'code': 0, 'desc': 'succeeded', 'data': 'abab'})
    >>> web.answer("GET", "/repeat", "n=2")
    (200, {'code': 1, 'desc': 'lack of "text" argument', 'data': {}})
    """

    def __init__(self, host="127.0.0.1", port=8000, server=None):
        self.host, self.port = host, port
        self.routes = {}

    def route(self, path, func, arguments, method="GET"):
        """Gives a function a path.

        Args:
            path: str, such as "/similar".
            func: function of keyword arguments, whose result JSON can hold.
            arguments: dict from the name of an argument to (function of the text, or None; whether
                it must be there).
            method: "GET" or "POST".
        """
        self.routes[method.upper(), path] = (func, arguments)

    def answer(self, method, path, query):
        """The status and the answer to a request, whose arguments are in its query or its body."""
        if (method, path) not in self.routes:
            return 404, {"code": 1, "desc": f"there is no {method} {path}", "data": {}}
        func, arguments = self.routes[method, path]
        given = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        values = {}
        for name, (convert, needed) in arguments.items():
            if name not in given:
                if needed:
                    return 200, {"code": 1, "desc": f'lack of "{name}" argument', "data": {}}
                continue
            try:
                values[name] = given[name] if convert is None else convert(given[name])
            except (TypeError, ValueError) as error:
                return 200, {"code": 1, "desc": f'wrong "{name}" argument: {error}', "data": {}}
        try:
            result = {"code": 0, "desc": "succeeded", "data": func(**values)}
            json.dumps(result)
        except Exception as error:  # whatever a function of the user's raises
            result = {"code": 2, "desc": str(error), "data": {}}
        return 200, result

    def make_server(self):
        """The server, which `serve_forever` runs."""
        web = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                path, _, query = self.path.partition("?")
                self._send("GET", path, query)

            def do_POST(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length).decode("utf-8", "replace")
                self._send("POST", self.path.partition("?")[0], body)

            def _send(self, method, path, query):
                status, answer = web.answer(method, urllib.parse.unquote(path), query)
                body = json.dumps(answer, ensure_ascii=False).encode("utf-8")
                self.send_response(status)
                self.send_header("Content-Type", "application/json; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        return http.server.ThreadingHTTPServer((self.host, self.port), Handler)

    def start(self):
        """Serves until it is stopped."""
        with self.make_server() as server:
            server.serve_forever()
