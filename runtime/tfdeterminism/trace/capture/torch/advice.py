"""The advice for PyTorch users, by the class of a fault."""

from ...backends import FILE_LINES, HOST_VALUE_LINES, ORDER_LINES, STRUCTURE_LINES
from ...faults import Fault

SEED_LINE = "torch.manual_seed(1)  # before the model is made; generators of your own: generator.manual_seed(1)"
DETERMINISTIC_LINE = "torch.use_deterministic_algorithms(True)  # an op that has no deterministic form raises then"
_CUDA_LINES = ["import os", "os.environ['CUBLAS_WORKSPACE_CONFIG'] = ':4096:8'  # before CUDA starts"]
_LINES = {
    Fault.HOST_VALUE: HOST_VALUE_LINES,
    Fault.SEED: [SEED_LINE],
    Fault.PIPELINE: [
        "loader = DataLoader(dataset, shuffle=True, generator=torch.Generator().manual_seed(1),",
        "                    worker_init_fn=seed_worker)  # which seeds random and numpy in each worker"],
    Fault.UNEXPLAINED: [DETERMINISTIC_LINE],
    Fault.STRUCTURE: STRUCTURE_LINES,
    Fault.UNORDERED: [
        "# give it an order: a lock, one thread, a generator of each turn's own, what a pool gives in the order of",
        "# its tasks (pool.map, a list of futures)"],
    Fault.FILE: FILE_LINES,
    Fault.ORDER: ORDER_LINES,
    Fault.UNINITIALIZED: ["torch.zeros(size)  # instead of torch.empty, or write all of it before it is read"],
}


def lines(fault, on_gpu):
    """Return the lines of code for a fault."""
    return (_CUDA_LINES if fault is Fault.UNEXPLAINED and on_gpu else []) + _LINES.get(fault, [])
