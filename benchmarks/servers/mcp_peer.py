"""A server with the official SDK, as in its documentation or with its fastest settings."""

from mcp.server import MCPServer

from benchmarks.servers.peer import read_request, serve


def main() -> None:
    request = read_request()
    server = MCPServer("benchmark", log_level=request.log_level)
    for function in request.functions:
        server.add_tool(function)
    if request.transport == "stdio":
        server.run()
    elif not request.tuned:
        server.run("streamable-http", port=request.port)
    else:
        stateless = request.transport == "stateless"
        serve(server.streamable_http_app(json_response=True, stateless_http=stateless), request.port)


if __name__ == "__main__":
    main()
