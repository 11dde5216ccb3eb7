# The image of annals-context: docker build -f deploy/docker/context.Dockerfile -t annals-context:0.1.0 .
# What runs is one command of it; Kubernetes probes it by gRPC.
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
WORKDIR /src
COPY deploy/docker deploy/docker
COPY proto proto
COPY services/common services/common
COPY services/context services/context
COPY requirements-assets.lock .
RUN deploy/docker/build-wheels.sh context /wheels
RUN deploy/docker/install.sh context /wheels /opt/annals
RUN deploy/docker/assets.sh context /opt/annals /var/lib/annals

FROM ${PYTHON_IMAGE}
COPY deploy/docker/finish.sh /tmp/finish.sh
RUN /tmp/finish.sh
COPY --from=build /opt/annals /opt/annals
COPY --from=build /var/lib/annals /var/lib/annals
ENV PATH=/opt/annals/bin:/usr/local/bin:/usr/bin:/bin
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
ENV TIKTOKEN_CACHE_DIR=/var/lib/annals/tokenizers
WORKDIR /var/lib/annals
USER 10001:10001
ENTRYPOINT ["annals-context"]
CMD ["serve"]
