/* loop.c -- a complete training loop that passes raw tensors to libstatrec.
 *
 * Two layers with batch normalization between them, y = W2 relu(bn(W1 x)), classify points of the
 * plane: class 1 where x0 x1 > 0. The three functions before main call the recorder.
 * usage: loop [RUN.h5] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <statrec/record.h>

enum { N = 64, IN = 2, D = 32 };  /* rows of a batch, inputs, hidden features */
enum { STEPS = 300, EPOCH = 50 }; /* updates in total and per epoch */
static const float eps = 1e-5f, alpha = 0.9f, lr = 0.1f;

/* mu, sigma2: running statistics */
typedef struct net {
    float w1[D][IN], gamma[D], beta[D], w2[D], mu[D], sigma2[D];
} net;

typedef struct pass { /* one batch: activations, and gradients dL/d... */
    float x[N][IN], h[N][D], xhat[N][D], y[N][D], s[D], p[N], dy[N][D], dh[N][D];
    int label[N];
} pass;

static float uniform(float low, float high) { /* Park and Miller (1988), one seed for all */
    static unsigned long long state = 1;
    state = state * 48271 % 2147483647;
    return low + (high - low) * (float)((double)state / 2147483647);
}

static void make_batch(pass *b) {
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < IN; k++) b->x[i][k] = uniform(-1, 1);
        b->label[i] = b->x[i][0] * b->x[i][1] > 0;
    }
}

static void make_net(net *m) {
    for (int c = 0; c < D; c++) {
        for (int k = 0; k < IN; k++) m->w1[c][k] = uniform(-1, 1);
        m->gamma[c] = m->sigma2[c] = 1, m->beta[c] = uniform(-1, 1);
        m->w2[c] = uniform(-0.3f, 0.3f), m->mu[c] = 0;
    }
}

/* Mean and biased variance of feature c over the rows. */
static void batch_moments(const pass *b, int c, float *mean, float *variance) {
    *mean = *variance = 0;
    for (int i = 0; i < N; i++) *mean += b->h[i][c] / N;
    for (int i = 0; i < N; i++) *variance += (b->h[i][c] - *mean) * (b->h[i][c] - *mean) / N;
}

/* With training: normalizes with batch statistics and updates the running ones. Returns the mean
 * loss. */
static double forward(net *m, pass *b, int training, double *accuracy) {
    double loss = 0;
    for (int c = 0; c < D; c++) {
        float mean = m->mu[c], variance = m->sigma2[c];
        for (int i = 0; i < N; i++)
            b->h[i][c] = m->w1[c][0] * b->x[i][0] + m->w1[c][1] * b->x[i][1];
        if (training) {
            batch_moments(b, c, &mean, &variance);
            m->mu[c] = alpha * m->mu[c] + (1 - alpha) * mean;
            m->sigma2[c] = alpha * m->sigma2[c] + (1 - alpha) * variance;
        }
        b->s[c] = sqrtf(variance + eps);
        for (int i = 0; i < N; i++) b->xhat[i][c] = (b->h[i][c] - mean) / b->s[c];
        for (int i = 0; i < N; i++) b->y[i][c] = m->gamma[c] * b->xhat[i][c] + m->beta[c];
    }
    *accuracy = 0;
    for (int i = 0; i < N; i++) {
        float logit = 0;
        for (int c = 0; c < D; c++) logit += m->w2[c] * fmaxf(b->y[i][c], 0);
        b->p[i] = 1 / (1 + expf(-logit));
        loss -= log(b->label[i] ? b->p[i] : 1 - b->p[i]) / N;
        *accuracy += 100.0 / N * ((b->p[i] > 0.5f) == b->label[i]);
    }
    return loss;
}

/* Computes the gradients and updates every weight. */
static void backward(net *m, pass *b) {
    for (int c = 0; c < D; c++) {
        float sum_g = 0, sum_gx = 0, dw2 = 0, dw1[IN] = {0};
        for (int i = 0; i < N; i++) {
            const float dlogit = (b->p[i] - (float)b->label[i]) / N;
            b->dy[i][c] = b->y[i][c] > 0 ? dlogit * m->w2[c] : 0;
            dw2 += dlogit * fmaxf(b->y[i][c], 0);
            sum_g += b->dy[i][c], sum_gx += b->dy[i][c] * b->xhat[i][c];
        }
        for (int i = 0; i < N; i++) {
            b->dh[i][c] =
                m->gamma[c] / b->s[c] * (b->dy[i][c] - sum_g / N - b->xhat[i][c] * sum_gx / N);
            for (int k = 0; k < IN; k++) dw1[k] += b->dh[i][c] * b->x[i][k];
        }
        for (int k = 0; k < IN; k++) m->w1[c][k] -= lr * dw1[k];
        m->w2[c] -= lr * dw2, m->beta[c] -= lr * sum_g, m->gamma[c] -= lr * sum_gx;
    }
}

/* Declares the site and the metrics, before the first step. */
static sr_recorder *open_recorder(const char *path, int *site, sr_failure *why) {
    sr_options options = SR_OPTIONS_DEFAULT;
    options.program = "examples/loop", options.loss_reduction = "mean", options.task = "points";
    options.model = "two layers", options.data = "quadrants", options.planned_steps = STEPS;
    sr_recorder *r = sr_create(path, &options, why);
    if (!r) return NULL;
    const sr_site hidden = {.size = sizeof(sr_site),
                            .name = "hidden",
                            .norm = "bn",
                            .kind = "linear",
                            .width = D,
                            .family = SR_FAMILY_SIGMA,
                            .eps = eps,
                            .alpha = alpha};
    *site = sr_add_site(r, &hidden);
    sr_add_metric(r, "valid_loss", "nats per point", "mean validation loss, running statistics",
                  SR_BETTER_LESS);
    sr_add_metric(r, "valid_accuracy", "percent", "validation points on the right side",
                  SR_BETTER_MORE);
    return r;
}

/* gamma: before the update. No call is checked, because sr_close reports the first failure. */
static void record_step(sr_recorder *r, int site, int64_t step, const pass *b, const float *gamma,
                        double loss) {
    const sr_tensor x = {
        .size = sizeof(sr_tensor), .data = b->h[0], .outer = N, .channels = D, .inner = 1};
    const sr_tensor dy = {
        .size = sizeof(sr_tensor), .data = b->dy[0], .outer = N, .channels = D, .inner = 1};
    const sr_step row = {.size = sizeof(sr_step),
                         .update = step,
                         .tokens = N,
                         .epoch = (double)step / EPOCH,
                         .loss = loss,
                         .lr = lr,
                         .grad_norm = NAN};
    sr_begin_step(r, step);
    sr_take_forward(r, site, &x, gamma);
    sr_take_backward(r, site, &dy);
    sr_end_step(r, &row);
}

static void record_evaluation(sr_recorder *r, int64_t step, double loss, double accuracy) {
    sr_begin_eval(r, step, (double)step / EPOCH);
    sr_put_metric(r, "valid_loss", loss);
    sr_put_metric(r, "valid_accuracy", accuracy);
    sr_end_eval(r);
    printf("step %3d  loss %.3f  accuracy %.1f\n", (int)step, loss, accuracy);
}

int main(int argc, char **argv) {
    static net m;
    static pass b, valid;
    sr_failure why = {0};
    int site = 0;
    sr_recorder *r = open_recorder(argc > 1 ? argv[1] : "loop.h5", &site, &why);
    if (!r) return fprintf(stderr, "loop: %s\n", why.text), EXIT_FAILURE;
    make_net(&m), make_batch(&valid);
    for (int64_t step = 1; step <= STEPS; step++) {
        double accuracy;
        float gamma[D];
        make_batch(&b);
        const double loss = forward(&m, &b, 1, &accuracy);
        memcpy(gamma, m.gamma, sizeof gamma);
        backward(&m, &b);
        record_step(r, site, step, &b, gamma, loss);
        if (step % EPOCH) continue;
        const double valid_loss = forward(&m, &valid, 0, &accuracy);
        record_evaluation(r, step, valid_loss, accuracy);
    }
    const sr_finish finish = {.size = sizeof(sr_finish), .status = "complete"};
    if (sr_close(r, &finish, &why) == SR_OK) return EXIT_SUCCESS;
    return fprintf(stderr, "loop: %s\n", why.text), EXIT_FAILURE;
}
