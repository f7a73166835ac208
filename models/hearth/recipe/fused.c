/*
 * The element-wise steps of training, each in one pass over memory: eager torch spends more time on these than on
 * matrices. Tensors are contiguous; `bf` is bfloat16 as its bits. Sums and functions are in float32. Used by fused.py.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef uint16_t bf;

static inline float up(bf x) {
    uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, 4);
    return y;
}

static inline bf down(float x) { /* round to nearest even */
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return (bf)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/*
 * sum = x + delta; y = sum / rms(sum) * w.
 * x, sum, delta, y (rows, dim), where delta may be null; w (dim); inverse (rows), on return 1 / rms(sum).
 */
void add_norm(const float *x, const bf *delta, const float *w, float *sum, bf *y, float *inverse, long rows, long dim,
              float eps) {
#pragma omp parallel for schedule(dynamic, 64)
    for (long r = 0; r < rows; r++) {
        const float *xr = x + r * dim;
        float *sr = sum + r * dim, squares = 0;
        if (delta)
            for (long i = 0; i < dim; i++) sr[i] = xr[i] + up(delta[r * dim + i]);
        else
            memcpy(sr, xr, dim * sizeof(float));
        for (long i = 0; i < dim; i++) squares += sr[i] * sr[i];
        float scale = inverse[r] = 1 / sqrtf(squares / dim + eps);
        for (long i = 0; i < dim; i++) y[r * dim + i] = down(sr[i] * scale * w[i]);
    }
}

/* d_sum (rows, dim) comes in with the residual's gradient and leaves with the norm's added; d_delta is its copy. */
void add_norm_back(const float *sum, const float *w, const float *inverse, const bf *d_y, float *d_sum, bf *d_delta,
                   float *d_w, long rows, long dim) {
#pragma omp parallel for schedule(dynamic, 64) reduction(+ : d_w[:dim])
    for (long r = 0; r < rows; r++) {
        const float *s = sum + r * dim;
        const bf *dy = d_y + r * dim;
        float *ds = d_sum + r * dim, scale = inverse[r], dot = 0;
        for (long i = 0; i < dim; i++) dot += up(dy[i]) * w[i] * s[i];
        dot *= scale * scale / dim;
        for (long i = 0; i < dim; i++) {
            float g = up(dy[i]);
            d_w[i] += g * s[i] * scale;
            ds[i] += scale * (g * w[i] - dot * s[i]);
        }
        if (d_delta)
            for (long i = 0; i < dim; i++) d_delta[r * dim + i] = down(ds[i]);
    }
}

/* y = silu(gate) * value, n elements. */
void swiglu(const bf *gate, const bf *value, bf *y, long n) {
#pragma omp parallel for schedule(dynamic, 65536)
    for (long i = 0; i < n; i++) {
        float g = up(gate[i]);
        y[i] = down(g / (1 + expf(-g)) * up(value[i]));
    }
}

void swiglu_back(const bf *gate, const bf *value, const bf *d_y, bf *d_gate, bf *d_value, long n) {
#pragma omp parallel for schedule(dynamic, 65536)
    for (long i = 0; i < n; i++) {
        float g = up(gate[i]), s = 1 / (1 + expf(-g)), d = up(d_y[i]);
        d_gate[i] = down(d * up(value[i]) * s * (1 + g * (1 - s)));
        d_value[i] = down(d * g * s);
    }
}

/* x (batch, time, heads, dim) -> y (batch, heads, time, dim): scaled, halves rotated by the tables (time, dim / 2). */
void rope(const bf *x, const float *cosine, const float *sine, bf *y, long batch, long time, long heads, long dim,
          float scale) {
    long half = dim / 2;
#pragma omp parallel for schedule(dynamic, 64)
    for (long row = 0; row < batch * time; row++) {
        long b = row / time, t = row % time;
        const float *c = cosine + t * half, *s = sine + t * half;
        for (long h = 0; h < heads; h++) {
            const bf *from = x + (row * heads + h) * dim;
            bf *to = y + ((b * heads + h) * time + t) * dim;
            for (long i = 0; i < half; i++) {
                float p = up(from[i]) * scale, q = up(from[i + half]) * scale;
                to[i] = down(p * c[i] - q * s[i]);
                to[i + half] = down(p * s[i] + q * c[i]);
            }
        }
    }
}

/* The transpose of rope: d_y (batch, heads, time, dim) -> d_x (batch, time, heads, dim), rotated back. */
void rope_back(const bf *d_y, const float *cosine, const float *sine, bf *d_x, long batch, long time, long heads,
               long dim, float scale) {
    long half = dim / 2;
#pragma omp parallel for schedule(dynamic, 64)
    for (long row = 0; row < batch * time; row++) {
        long b = row / time, t = row % time;
        const float *c = cosine + t * half, *s = sine + t * half;
        for (long h = 0; h < heads; h++) {
            const bf *from = d_y + ((b * heads + h) * time + t) * dim;
            bf *to = d_x + (row * heads + h) * dim;
            for (long i = 0; i < half; i++) {
                float p = up(from[i]) * scale, q = up(from[i + half]) * scale;
                to[i] = down(p * c[i] + q * s[i]);
                to[i + half] = down(q * c[i] - p * s[i]);
            }
        }
    }
}

/* Causal softmax in place: row r of scores (rows, time) is position r % time, which sees the keys up to its own. */
void softmax(bf *scores, long rows, long time) {
#pragma omp parallel for schedule(dynamic, 64)
    for (long r = 0; r < rows; r++) {
        bf *s = scores + r * time;
        long n = r % time + 1;
        float line[n], top = -INFINITY, total = 0;
        for (long i = 0; i < n; i++) line[i] = up(s[i]);
        for (long i = 0; i < n; i++) top = line[i] > top ? line[i] : top;
        for (long i = 0; i < n; i++) total += line[i] = expf(line[i] - top);
        for (long i = 0; i < n; i++) s[i] = down(line[i] / total);
        memset(s + n, 0, (time - n) * sizeof(bf));
    }
}

/* d (rows, time) comes in as the gradient of the weights p and leaves as that of the scores. */
void softmax_back(const bf *p, bf *d, long rows, long time) {
#pragma omp parallel for schedule(dynamic, 64)
    for (long r = 0; r < rows; r++) {
        const bf *w = p + r * time;
        bf *g = d + r * time;
        long n = r % time + 1;
        float dot = 0;
        for (long i = 0; i < n; i++) dot += up(w[i]) * up(g[i]);
        for (long i = 0; i < n; i++) g[i] = down(up(w[i]) * (up(g[i]) - dot));
        memset(g + n, 0, (time - n) * sizeof(bf));
    }
}

/* Mean cross entropy of logits (rows, vocab) against targets (rows); the logits are overwritten with its gradient. */
double cross_entropy(bf *logits, const int64_t *targets, long rows, long vocab) {
    double loss = 0;
#pragma omp parallel for schedule(dynamic, 16) reduction(+ : loss)
    for (long r = 0; r < rows; r++) {
        bf *l = logits + r * vocab;
        float line[vocab], top = -INFINITY, total = 0;
        for (long i = 0; i < vocab; i++) line[i] = up(l[i]);
        for (long i = 0; i < vocab; i++) top = line[i] > top ? line[i] : top;
        loss -= line[targets[r]] - top;
        for (long i = 0; i < vocab; i++) total += line[i] = expf(line[i] - top);
        loss += logf(total);
        float scale = 1 / (total * rows);
        line[targets[r]] -= total;
        for (long i = 0; i < vocab; i++) l[i] = down(line[i] * scale);
    }
    return loss / rows;
}
