"""The declarations of record.h, runfile.h and base.h for ctypes: structs, and the type of every
function.

Statistics, families and metrics are found by name (sr_vector_id and its kin), so no table of
format.h is repeated here. The few enumerations of the interface itself do.
"""
import ctypes
from ctypes import c_bool, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p

ABI = 1  # SR_ABI_VERSION of the headers that this file follows

NAME_SIZE, KIND_SIZE, METHOD_SIZE = 64, 16, 192  # SR_NAME_SIZE and so on

BETTER = {"less": -1, "": 0, "more": 1}  # sr_better
SCOPES = ("site", "step")  # sr_scope
REPEATS = ("last", "merge")  # sr_repeat
STEP_INTS = ("step", "update", "tokens")  # SR_STEP_INTS
SPECTRA = ("input", "gradient")  # sr_spectrum
FINALS = ("tid_mean", "tid_var")  # sr_final
PAIRS = ("pair_x", "pair_y", "pair_feature")  # sr_pair, after "pair_"


class Struct(ctypes.Structure):
    """A struct whose first member is its size, which is filled in here."""

    def __init__(self, **fields):
        super().__init__(size=ctypes.sizeof(type(self)), **fields)


def struct(name, fields):
    """The Struct with `size`, then these (name, type) pairs."""
    return type(name, (Struct,), {"_fields_": [("size", c_size_t), *fields]})


def several(names, kind):
    """("a b", c_int) -> [("a", c_int), ("b", c_int)]."""
    return [(name, kind) for name in names.split()]


class Failure(ctypes.Structure):
    """sr_failure, which alone has no size."""

    _fields_ = [("status", c_int), ("text", c_char * 768), ("hint", c_char * 256)]


Options = struct("Options", [
    ("force", c_bool),
    *several("program version command config host git model data task loss_reduction parent",
             c_char_p),
    ("seed", c_uint64), ("threads", c_int), *several("scalars vectors", c_bool),
    *several("vectors_every planned_steps size_limit flush_steps", c_int64),
    *several("flush_seconds started", c_double), *several("spectra final", c_bool),
    ("planned_spectra", c_int64), *several("resume running", c_bool),
    ("overhead", c_double), ("ranks", c_char_p), ("sync", c_int), ("pairs", c_int64)])

# SR_OPTIONS_DEFAULT; other fields are zero.
OPTIONS_DEFAULT = dict(loss_reduction="sum", scalars=True, vectors=True, vectors_every=-1,
                       size_limit=2000000000, flush_steps=64, flush_seconds=5.0, running=True,
                       overhead=0.02)

Site = struct("Site", [
    *several("name norm kind", c_char_p), *several("family width depth layer_scale", c_int),
    *several("eps alpha", c_double), *several("axis uses constants", c_char_p),
    ("layer_scale_own", c_bool), ("repeat", c_int)])

Step = struct("Step", several("update tokens", c_int64)
              + several("epoch loss lr grad_norm", c_double))

# Pointers to doubles are plain addresses here: see _arrays.address.
Forward = struct("Forward", several("rows samples padded", c_int64)
                 + several("mean variance mean_square gamma", c_void_p))
Backward = struct("Backward", several("sum_g sum_gc sum_gg", c_void_p))
Pass = struct("Pass", [("site", c_int), *several("has_gg has_gamma", c_bool),
                       *several("rows samples padded stride", c_int64), ("values", c_void_p)])

# sr_tensor of moments.h; its data is an address, too.
Tensor = struct("Tensor", [("data", c_void_p), ("element", c_int),
                           *several("outer channels inner", c_int64), ("valid", c_void_p),
                           ("samples", c_int64)])

PassSums = struct("PassSums", [
    *several("g x", c_void_p), ("vector", c_void_p * 5), *several("element vector_element", c_int),
    *several("outer channels inner", c_int64), *several("to square", c_void_p), ("eps", c_double),
    ("root", c_bool)])

DevicePlace = struct("DevicePlace", several("channels sums sums_stride vectors vectors_stride gain more",
                                             c_int64) + [("eps", c_double)])

PassBlock = struct("PassBlock", [("channels", c_int64), ("values", c_void_p), ("eps", c_double)])

# These by module struct's letters: a Structure takes longer than the sums of a small tensor.
TENSOR, PASS = "NPiqqqPq", "Ni??qqqqP"
PASS_SUMS = "N7PiiqqqPPd?0N"
DEVICE_PLACE = "N7qd"
PASS_BLOCK = "NqPd"

Finish = struct("Finish", several("status reason weights_digest", c_char_p))

RunSite = struct("RunSite", [
    *several("name norm", c_char * NAME_SIZE), ("kind", c_char * KIND_SIZE),
    *several("offset width depth layer_scale", c_int64), *several("eps alpha", c_double),
    ("observed", c_int64), ("called", c_char * (NAME_SIZE + 4)), ("family", c_int),
    *several("axis uses constants", c_char * KIND_SIZE),
    *several("layer_scale_own merged", c_int64), ("alpha_bwd", c_double)])

RunInfo = struct("RunInfo", [
    *several("path program version command config host created git model data task", c_char_p),
    *several("loss_reduction parent", c_char_p), ("seed", c_uint64), ("threads", c_int),
    *several("sites width steps vectors evals", c_int64),
    *several("status reason weights_digest finished", c_char_p), ("wall_seconds", c_double),
    ("spectra", c_int64), ("ranks", c_char_p), ("pairs", c_int64)])

RunMetric = struct("RunMetric", several("name unit definition", c_char_p) + [("better", c_int)])
RunDeclared = struct("RunDeclared", several("name unit definition", c_char_p) + [("scope", c_int)])
RunEmbedding = struct("RunEmbedding", several("rows cols values records", c_int64)
                      + [("method", c_char * METHOD_SIZE)])
Recovery = struct("Recovery", several("steps vectors evals lost_steps lost_vectors lost_evals "
                                      "running_step", c_int64))

TELL = ctypes.CFUNCTYPE(None, c_void_p, ctypes.POINTER(Failure))  # sr_fault_fn

_WHY = ctypes.POINTER(Failure)
_RUN = c_void_p  # sr_runfile *, sr_recorder *
_TO = ctypes.POINTER
_BYTES = c_void_p  # of a Tensor, of Passes
_ROWS = [c_int64, c_int64, c_void_p, _WHY]  # first, count, value, why

# Calls of some microseconds, which keep the interpreter's lock: a thread that writes would have to wait
# for the training thread after each of them, and the training thread for it.
QUICK = ("sr_add_seconds", "sr_put_vectors", "sr_put_scalars", "sr_put_step_scalar",
         "sr_join_passes", "sr_read_vectors", "sr_sum_moves")

# name: (result, arguments)
PROTOTYPES = {
    "sr_abi_version": (c_int, []),
    "sr_version": (c_char_p, []),
    "sr_status_name": (c_char_p, [c_int]),
    "sr_vector_id": (c_int, [c_char_p]),
    "sr_scalar_id": (c_int, [c_char_p]),
    "sr_vector_name": (c_char_p, [c_int]),
    "sr_scalar_name": (c_char_p, [c_int]),
    "sr_family_find": (c_int, [c_char_p]),
    "sr_family_name": (c_char_p, [c_int]),
    # moments.h
    "sr_moments": (c_int64, [_BYTES, c_void_p, c_void_p, c_void_p]),
    "sr_gradient_sums": (None, [_BYTES, _BYTES, *[c_void_p] * 4]),
    "sr_row_norms": (None, [_BYTES, _BYTES, c_void_p, c_double, c_bool, c_void_p]),
    "sr_sum_pass": (None, [_BYTES]),
    "sr_read_device_sums": (None, [_BYTES, c_int64, c_void_p, c_double, *[c_void_p] * 3]),
    "sr_join_passes": (None, [_BYTES, c_int64, c_double, c_void_p, c_void_p]),
    "sr_read_vectors": (None, [c_void_p, c_void_p, c_int64, c_int, c_void_p]),
    "sr_sum_moves": (None, [c_int64, *[c_void_p] * 6]),
    # record.h
    "sr_create": (_RUN, [c_char_p, _TO(Options), _WHY]),
    "sr_lock_refused": (c_char_p, [_RUN]),
    "sr_add_site": (c_int, [_RUN, _TO(Site)]),
    "sr_set_alpha_backward": (c_int, [_RUN, c_int, c_double]),
    "sr_set_observed": (c_int, [_RUN, c_int]),
    "sr_add_metric": (c_int, [_RUN, c_char_p, c_char_p, c_char_p, c_int]),
    "sr_declare_scalar": (c_int, [_RUN, c_char_p, c_char_p, c_char_p, c_int]),
    "sr_projected_bytes": (c_int64, [_RUN]),
    "sr_vectors_every": (c_int64, [_RUN]),
    "sr_begin_step": (c_int, [_RUN, c_int64]),
    "sr_wants_vectors": (c_bool, [_RUN]),
    "sr_put_vector": (c_int, [_RUN, c_int, c_int, c_void_p]),
    "sr_put_rows": (c_int, [_RUN, c_int, c_int64]),
    "sr_put_scalar": (c_int, [_RUN, c_int, c_int, c_double]),
    "sr_put_step_scalar": (c_int, [_RUN, c_int, c_double]),
    "sr_put_forward": (c_int, [_RUN, c_int, _TO(Forward)]),
    "sr_put_backward": (c_int, [_RUN, c_int, _TO(Backward)]),
    "sr_put_passes": (c_int, [_RUN, _BYTES, c_int64]),
    "sr_put_vectors": (c_int, [_RUN, c_int, _TO(c_int), _TO(c_void_p), c_int64]),
    "sr_put_scalars": (c_int, [_RUN, c_int, _TO(c_int), _TO(c_double), c_int64]),
    "sr_own_seconds": (c_double, [_RUN]),
    "sr_add_seconds": (None, [_RUN, c_double]),
    "sr_end_step": (c_int, [_RUN, _TO(Step)]),
    "sr_begin_eval": (c_int, [_RUN, c_int64, c_double]),
    "sr_put_metric": (c_int, [_RUN, c_char_p, c_double]),
    "sr_end_eval": (c_int, [_RUN]),
    "sr_flush": (c_int, [_RUN]),
    "sr_copy_rows": (c_int, [_RUN, c_char_p, c_int64, c_int64, _TO(Recovery)]),
    "sr_failed": (_WHY, [_RUN]),
    "sr_close": (c_int, [_RUN, _TO(Finish), _WHY]),
    "sr_abandon": (None, [_RUN]),
    # runfile.h
    "sr_run_open": (_RUN, [c_char_p, _WHY]),
    "sr_run_close": (None, [_RUN]),
    "sr_run_damage": (c_char_p, [_RUN, c_int]),
    "sr_run_repaired": (c_char_p, [_RUN, c_int]),
    "sr_run_get_info": (_TO(RunInfo), [_RUN]),
    "sr_run_get_site": (_TO(RunSite), [_RUN, c_int64]),
    "sr_run_has_scalar": (c_bool, [_RUN, c_char_p]),
    "sr_run_has_vector": (c_bool, [_RUN, c_char_p]),
    "sr_run_get_metric": (_TO(RunMetric), [_RUN, c_int64]),
    "sr_run_get_declared": (_TO(RunDeclared), [_RUN, c_int64]),
    "sr_run_name": (c_char_p, [_RUN, c_char_p, c_int]),
    "sr_run_definition": (c_char_p, [_RUN, c_char_p]),
    "sr_run_step_ints": (c_int, [_RUN, c_char_p, *_ROWS]),
    "sr_run_step_reals": (c_int, [_RUN, c_char_p, *_ROWS]),
    "sr_run_scalar": (c_int, [_RUN, c_char_p, c_int64, *_ROWS]),
    "sr_run_vector_steps": (c_int, [_RUN, *_ROWS]),
    "sr_run_vector": (c_int, [_RUN, c_char_p, c_int64, *_ROWS]),
    "sr_run_eval": (c_int, [_RUN, c_char_p, *_ROWS]),
    "sr_run_get_embedding": (c_int, [_RUN, c_char_p, _TO(RunEmbedding), _WHY]),
    "sr_run_singular_values": (c_int, [_RUN, c_char_p, c_int64, _TO(c_int64), c_void_p, _WHY]),
    "sr_run_spectrum": (c_int, [_RUN, c_int, c_int64, c_int64, _TO(c_int64), _TO(c_int64),
                                c_void_p, _WHY]),
    "sr_run_final": (c_int, [_RUN, _TO(c_int64), c_void_p, _WHY]),
    "sr_run_pairs": (c_int, [_RUN, c_int64, *[c_void_p] * 3, _WHY]),
    "sr_run_check_all": (c_int, [c_char_p, TELL, c_void_p, _WHY]),
}
