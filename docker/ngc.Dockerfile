# An NVIDIA NGC image, as NVIDIA publishes it, with the suite: `tfdet build ngc19.06-py3`.
# By hand, in a checkout with a plan.json: docker build -f docker/ngc.Dockerfile --build-arg ... .
ARG BASE_IMAGE=nvcr.io/nvidia/tensorflow:19.06-py3
FROM ${BASE_IMAGE}

ARG LOCK=docker/locks/pytest.txt
USER root
COPY docker/install /opt/tfdet/install
COPY ${LOCK} /opt/tfdet/lock.txt
COPY docker/locks/nvml.txt /opt/tfdet/nvml.txt
RUN /opt/tfdet/install image /opt/tfdet

ARG ENVIRONMENT=unknown
ENV TFDET_ENGINE=docker TFDET_IMAGE=tfdet:${ENVIRONMENT} \
    PYTHONPATH=/opt/tfdet/runtime:/opt/tfdet/site PYTHONDONTWRITEBYTECODE=1 PYTHONNOUSERSITE=1 \
    HOME=/tmp USER=tfdet TFDET_VGPU=/opt/tfdet/vgpu NVIDIA_DRIVER_CAPABILITIES=compute,utility
WORKDIR /tmp
STOPSIGNAL SIGINT
# No USER here: see stock.Dockerfile.
ENTRYPOINT ["/opt/tfdet/entrypoint"]
CMD []

# From here on all is small: a changed suite builds anew from here.
COPY vgpu /opt/tfdet/vgpu
COPY docker/entrypoint plan.json /opt/tfdet/
COPY runtime /opt/tfdet/runtime
COPY tests/suite /opt/tfdet/tests/suite
