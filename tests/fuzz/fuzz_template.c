/* Templates of figures.
 * Readers: src/plot/template/plot_template.c */

#include "fuzz.h"
#include "plot/template/plot_template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sr_failure why = {0};
    plot_template t = {0};
    const plot_choice choice = PLOT_NO_CHOICE;
    sr_status status = plot_template_read(fuzz_store("mine.gp", data, size), &t, &why);
    fuzz_expect_reason(status != SR_OK, &why);
    if (status != SR_OK) return 0;
    status = plot_template_choose(&t, &choice, &why);
    fuzz_expect_reason(status != SR_OK, &why);
    plot_template_free(&t);
    return 0;
}
