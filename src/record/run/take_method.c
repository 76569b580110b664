/* take_method.c -- the method of a site as its host declares it, checked against its family. */
#include "record/run/take_method.h"

#include <stdio.h>
#include <string.h>

#include "runfile/site_method.h"

/* Possible axes of each family, the default first; the statistics that it uses, NULL: any. */
static const struct {
    const char *axes, *uses;
} of_family[SR_FAMILY_COUNT] = {
    [SR_FAMILY_NONE] = {"-", ""},           [SR_FAMILY_SIGMA] = {"batch", "mu,sigma2"},
    [SR_FAMILY_PSI] = {"batch", "psi2"},    [SR_FAMILY_PN] = {"batch", "psi2"},
    [SR_FAMILY_ROW] = {"row,sample", NULL}, [SR_FAMILY_OWN] = {"batch", NULL},
};

static bool fits(const sr_site *s, const char *axis, const char *uses, const char *constants) {
    const char *const must = of_family[s->family].uses;
    return method_has_word(of_family[s->family].axes, axis, strlen(axis)) &&
           strlen(uses) < SR_KIND_SIZE && strlen(constants) < SR_KIND_SIZE &&
           method_has_words("mu,sigma2,psi2", uses) && method_has_words(uses, constants) &&
           (!must || (method_has_words(must, uses) && method_has_words(uses, must)));
}

bool recorder_take_method(sr_run_site *to, const sr_site *s) {
    const char *axes = of_family[s->family].axes, *uses = of_family[s->family].uses;
    char axis[SR_KIND_SIZE];
    snprintf(axis, sizeof axis, "%.*s", (int)strcspn(axes, ","), axes);
    method_copy(to->axis, s->axis ? s->axis : axis);
    method_copy(to->uses, s->uses ? s->uses : uses ? uses : "");
    method_copy(to->constants, s->constants ? s->constants : "");
    to->family = s->family;
    to->layer_scale_own = s->layer_scale_own;
    return fits(s, s->axis ? s->axis : axis, s->uses ? s->uses : to->uses,
                s->constants ? s->constants : "");
}
