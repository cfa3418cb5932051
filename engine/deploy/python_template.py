"""The fixed part of an exported module: how it checks inputs, keeps prepared values, and calls what was written for it.

A storage is a flat tensor that begins where the strides and offsets in the file count from.
"""

HEAD = '''

def _view(storage, shape, strides, offset):
    return storage.as_strided(shape, strides, storage.storage_offset() + offset)


def _storage(position, tensor):
    """The flat storage of an input. One in another layout than it was tuned for is copied into that layout."""
    name, shape, dtype, strides, offset = INPUTS[position]
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name} is no tensor")
    if tuple(tensor.shape) != shape or tensor.dtype != dtype:
        raise ValueError(
            f"{name} is {tuple(tensor.shape)} {tensor.dtype}, and the kernels are for {shape} {dtype}: tune for it"
        )
    elements = 1 + offset + sum((extent - 1) * stride for extent, stride in zip(shape, strides))
    elements = max(elements, 1) if tensor.numel() else 1
    same = all(extent == 1 or own == stride for extent, own, stride in zip(shape, tensor.stride(), strides))
    if tensor.numel() and same and tensor.storage_offset() >= offset:
        start = tensor.storage_offset() - offset
        if (start * tensor.element_size() + tensor.untyped_storage().data_ptr()) % 16 == 0:
            return tensor.as_strided((elements,), (1,), start)
    if any(extent > 1 and stride == 0 for extent, stride in zip(shape, strides)) and not same:
        raise ValueError(f"{name} has strides {tensor.stride()}, and these kernels are for strides {strides}")
    storage = torch.empty(elements, dtype=dtype, device=tensor.device)
    first = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in strides)
    _view(storage, shape, strides, offset)[first].copy_(tensor[first])
    return storage


def _stamp(tensor):
    """What changes when a tensor is another one, or was written to."""
    return tensor.data_ptr(), tensor.device, None if tensor.is_inference() else tensor._version


def _on(device):
    if device.type == "cuda":
        return torch.cuda.device(device)
    if not triton.knobs.runtime.interpret:
        here = "" if torch.cuda.is_available() else ", which isn't here,"
        raise ValueError(f"the kernels need a CUDA GPU{here} and CUDA tensors, and the inputs are on the {device.type}")
    return contextlib.nullcontext()
'''

PROGRAM = '''
class Program:
    """The launches of one program. It keeps what depends on weights alone, and nothing else, between calls."""

    def __init__(self):
        self._held = {}
        self._stamps = None
        self._kept = ()

    @torch.no_grad()
    def __call__(self, *inputs):
        if len(inputs) != len(INPUTS):
            raise TypeError(f"the program takes {len(INPUTS)} inputs, not {len(inputs)}")
        b = {position: _storage(position, tensor) for position, tensor in enumerate(inputs)}
        devices = {storage.device for storage in b.values()} or {torch.empty(0).device}
        if len(devices) > 1:
            raise ValueError(f"the inputs are on several devices: {sorted(map(str, devices))}")
        (device,) = devices
        with _on(device):
            self._bring_up_to_date({position: inputs[position] for position in self.PREPARED_FROM}, b, device)
            return self._launch({**b, **self._held}, device)

    @torch.no_grad()
    def prepare(self, weights):
        """Compute what depends on weights alone; `weights` by position."""
        b = {position: _storage(position, tensor) for position, tensor in weights.items()}
        device = next(iter(b.values())).device
        with _on(device):
            self._bring_up_to_date(weights, b, device)

    def capture(self, *inputs):
        """A CUDA graph of one call, and its outputs, which each replay writes again."""
        for _ in range(2):
            self(*inputs)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs = self(*inputs)
        return graph, outputs

    def _bring_up_to_date(self, weights, b, device):
        stamps = tuple(_stamp(weights[position]) for position in self.PREPARED_FROM)
        if stamps and stamps != self._stamps:
            held = dict(b)
            self._prepare(held, device)
            self._held = {number: storage for number, storage in held.items() if number not in b}
            self._kept = tuple(weights.values())
            self._stamps = stamps
'''

TAIL = """

PROGRAM = Program()

"""
