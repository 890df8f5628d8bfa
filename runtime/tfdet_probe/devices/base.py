"""What the probe asks of a kind of device.  A new kind is a file here and its name in devices.ALL."""


class Busy(Exception):
    """The device could not be kept busy."""


class Device(object):
    """One kind of device; a case runs on the first of it.

    kind: as records and matrix/devices call it.  word: what `--device` calls it.  placement: how frameworks begin its
    name, as in GPU:0.  in_company: is it kept busy beside later processes where nobody says otherwise?
    launches_kernels: ones that a profiler can name.  absent: what to do where there is none.
    """

    kind = word = placement = None
    in_company = launches_kernels = False
    absent = ""

    @property
    def name(self):
        return self.placement + ":0"

    def installed(self):
        """What every record's stack says of this kind on this machine, whichever device the case runs on."""
        return {}

    def describe(self, framework):
        """({kind, model} or None where the framework sees none, more of the stack).  Called in a child.

        model: the key of the evidence: the kind, or the kind, a dash and more.
        """
        raise NotImplementedError

    def state(self):
        """What it says of itself now, for the record; None where it tells nothing."""

    def work(self):
        """(what keeps it busy, [work]): in its own thread, each work() gives a step to be done again and again."""
        raise Busy("nothing is known that would")
