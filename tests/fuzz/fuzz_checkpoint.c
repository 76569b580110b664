/* A checkpoint: its card, and the model in it. */
#include "fuzz_hdf5.h"
#include "train/trained.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static trained t;
    sr_failure why = {0};
    checkpoint_card card = {0};
    const trained_options o = {.data_dir = "", .threads = 1};
    const char *path = fuzz_image_store(fuzz_checkpoint_image(), "x.ckpt", data, size);
    sr_status status = checkpoint_card_read(path, &card, &why);
    fuzz_expect_reason(status != SR_OK, &why);
    checkpoint_card_free(&card);
    why = (sr_failure){0};
    t = (trained){0};
    status = trained_open(&t, path, &o, &why);
    fuzz_expect_reason(status != SR_OK, &why);
    trained_close(&t);
    return 0;
}
