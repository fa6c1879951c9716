"""A FastMCP server, as in its documentation or with its fastest settings."""

from fastmcp import FastMCP

from benchmarks.servers.peer import read_request, serve


def main() -> None:
    request = read_request()
    server = FastMCP("benchmark")
    for function in request.functions:
        server.tool(function, timeout=request.deadline_seconds)
    if request.transport == "stdio":
        server.run("stdio", show_banner=False, log_level="ERROR")
    elif not request.tuned:
        server.run("http", port=request.port, path="/mcp", show_banner=False)
    else:
        stateless = request.transport == "stateless"
        serve(server.http_app(json_response=True, stateless_http=stateless), request.port)


if __name__ == "__main__":
    main()
