# The image of annals-storage: docker build -f deploy/docker/storage.Dockerfile -t annals-storage:0.1.0 .
# What runs is one command of it; Kubernetes probes it by gRPC.
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
WORKDIR /src
COPY deploy/docker deploy/docker
COPY proto proto
COPY services/common services/common
COPY services/storage services/storage
COPY requirements-assets.lock .
RUN deploy/docker/build-wheels.sh storage /wheels
RUN deploy/docker/install.sh storage /wheels /opt/annals
RUN deploy/docker/assets.sh storage /opt/annals /var/lib/annals

FROM ${PYTHON_IMAGE}
COPY deploy/docker/finish.sh /tmp/finish.sh
RUN /tmp/finish.sh
COPY --from=build /opt/annals /opt/annals
COPY --from=build /var/lib/annals /var/lib/annals
ENV PATH=/opt/annals/bin:/usr/local/bin:/usr/bin:/bin
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
ENV TIKTOKEN_CACHE_DIR=/var/lib/annals/tokenizers
ENV ANNALS_STORAGE_DATA_DIR=/var/lib/annals
WORKDIR /var/lib/annals
USER 10001:10001
ENTRYPOINT ["annals-storage"]
CMD ["serve"]
