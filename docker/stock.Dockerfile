# A stock TensorFlow with the suite. `tfdet build tf2.0` takes the official image;
# `tfdet build tf2.0 --base-image IMAGE` installs TensorFlow by pip on any base that has the CPython of the lock.
# By hand, in a checkout with a plan.json: docker build -f docker/stock.Dockerfile --build-arg ... .
ARG BASE_IMAGE=tensorflow/tensorflow:2.0.0-gpu-py3
FROM ${BASE_IMAGE}

# INSTALL=image: TensorFlow is there. INSTALL=pip: all of LOCK, into the CPython PYTHON of the base.
ARG INSTALL=image
ARG LOCK=docker/locks/pytest.txt
ARG PYTHON=
# Packages without wheels, and the environment variables of their build.
ARG COMPILED=
ARG COMPILE_VARIABLES=
USER root
COPY docker/install /opt/tfdet/install
COPY ${LOCK} /opt/tfdet/lock.txt
COPY docker/locks/nvml.txt /opt/tfdet/nvml.txt
RUN COMPILED="${COMPILED}" COMPILE_VARIABLES="${COMPILE_VARIABLES}" \
    /opt/tfdet/install "${INSTALL}" /opt/tfdet ${PYTHON}

ARG ENVIRONMENT=unknown
ENV TFDET_ENGINE=docker TFDET_IMAGE=tfdet:${ENVIRONMENT} \
    PYTHONPATH=/opt/tfdet/runtime:/opt/tfdet/site PYTHONDONTWRITEBYTECODE=1 PYTHONNOUSERSITE=1 \
    HOME=/tmp USER=tfdet TFDET_VGPU=/opt/tfdet/vgpu NVIDIA_DRIVER_CAPABILITIES=compute,utility
WORKDIR /tmp
STOPSIGNAL SIGINT
# No USER here: the entrypoint changes to the owner of /out, so that the records in a mounted folder belong to the user.
# `tfdet run` does not start as root.
ENTRYPOINT ["/opt/tfdet/entrypoint"]
CMD []

# From here on all is small: a changed suite builds anew from here.
COPY vgpu /opt/tfdet/vgpu
COPY docker/entrypoint plan.json /opt/tfdet/
COPY runtime /opt/tfdet/runtime
COPY tests/suite /opt/tfdet/tests/suite
