/* Templates of figures.
 * Readers: src/plot/template/plot_template.c */

#include "fuzz.h"
#include "plot/template/plot_template.h"

/* Reads the template each time, because choosing changes it. */
static void choose(const char *path, const plot_choice *choice) {
    sr_failure why = {0};
    plot_template t = {0};
    char takes[256];
    sr_status status = plot_template_read(path, &t, &why);
    fuzz_expect_reason(status != SR_OK, &why);
    if (status != SR_OK) return;
    plot_template_takes(&t, takes, sizeof takes);
    status = plot_template_choose(&t, choice, &why);
    fuzz_expect_reason(status != SR_OK, &why);
    plot_template_free(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const plot_choice none = PLOT_NO_CHOICE;
    plot_choice papers = none, words = none;
    const char *path = fuzz_store("mine.gp", data, size);
    papers.published = true, papers.metric = "valid_bleu", papers.step = "3";
    words.site = "0", words.stat = "g_mu,mu", words.word[0].name = "reading";
    words.word[0].value = "roots", words.words = 1;
    choose(path, &none);
    choose(path, &papers);
    choose(path, &words);
    return 0;
}
