# The binary is static and runs as an unprivileged user (65532) on an empty, read-only root:
#   docker build -t headgate . && docker run --read-only --cap-drop=ALL -p 6379:6379 -e HEADGATE_REQUIREPASS="$SECRET" headgate
# Inside it listens on every address, whatever a configuration file says of bind; -e HEADGATE_BIND=… changes that.
# Data stay in memory. -v headgate:/data -e HEADGATE_DIR=/data -e HEADGATE_APPENDONLY=yes keeps them in a volume, which takes the owner of /data here.
# protected-mode is on, so without a password only the container itself is served.
FROM golang:1.26 AS build
WORKDIR /src
COPY . .
# This downloads what it compiles. `go mod download` would also fetch what only tests import.
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /headgate ./cmd/headgate && mkdir /data

FROM scratch
COPY --from=build /headgate /headgate
COPY --from=build --chown=65532:65532 /data /data
USER 65532:65532
EXPOSE 6379
HEALTHCHECK --interval=10s --timeout=2s --start-period=2s CMD ["/headgate", "ping"]
ENV HEADGATE_BIND="* -::*" HEADGATE_SAVE=""
ENTRYPOINT ["/headgate"]
