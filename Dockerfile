# The web leaderboard and the command line, with PostgreSQL and sign-in. docs/team-server.md says how to run it.
# Images are named by digest, which no registry can give to other content.
FROM python:3.11.16-slim@sha256:9c900dea9e8fb7e16277c179b555cc72d29a352dbc33cff48ad5a0412fd5bfc7 AS build
WORKDIR /src
COPY requirements/bootstrap.txt requirements/server.txt requirements/
RUN python -m venv /opt/build \
 && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements/bootstrap.txt \
 && python -m venv --without-pip /opt/ragleague \
 && /opt/build/bin/uv pip install --no-cache --compile-bytecode --python /opt/ragleague/bin/python \
      --require-hashes -r requirements/server.txt
COPY pyproject.toml README.md LICENSE ./
COPY judges judges
COPY retrieval_eval retrieval_eval
COPY arena arena
COPY ui ui
COPY ragleague ragleague
RUN /opt/build/bin/hatchling build -t wheel -d /opt/wheel \
 && /opt/build/bin/uv pip install --no-cache --compile-bytecode --python /opt/ragleague/bin/python \
      --no-deps /opt/wheel/*.whl

FROM python:3.11.16-slim@sha256:9c900dea9e8fb7e16277c179b555cc72d29a352dbc33cff48ad5a0412fd5bfc7
COPY --from=build /opt/ragleague /opt/ragleague
RUN useradd --uid 10001 --create-home arena && install -d -o arena -g arena /data
ENV PATH=/opt/ragleague/bin:$PATH
USER 10001
WORKDIR /data
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s \
  CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8501/healthz', timeout=8)"]
ENTRYPOINT ["ragleague"]
CMD ["ui", "tournament.yaml", "--address", "0.0.0.0", "--roles", "roles.yaml"]
