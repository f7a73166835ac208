// llama.cpp's side of the comparisons on real weights, for peer.ts. Numbers in files are little-endian.
//
//   peer tokens MODEL TEXTS OUT SPECIAL   texts (u32 bytes, UTF-8 …) to ids (u32 count, i32 ids …); SPECIAL 1: texts of control tokens are those
//   peer ends MODEL NOTHING OUT           the ids that end an answer (u32 count, i32 ids …)
//   peer logits MODEL IDS OUT CTX K V     of each sequence (u32 count, i32 ids …) the logits of every position, float32
//   peer losses MODEL IDS OUT CTX K V FIRST   of each position from FIRST to the last but one of a sequence: -ln p(next id), float32
//   peer greedy MODEL IDS OUT CTX COUNT   of each sequence the ids that follow by argmax (u32 count, i32 ids …), at most COUNT
//   peer vectors MODEL IDS OUT CTX        of each sequence the pooled vector, float32, not normalised
//   peer quantize FROM TO TYPE THREADS    TYPE is a number of llama_ftype
//
// K and V: f32, f16, q8_0 or q4_0. THREADS in the environment: of the others.
#include "ggml-backend.h"
#include "llama.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

using Ids = std::vector<llama_token>;

static FILE * open(const char * path, const char * mode) {
    FILE * file = fopen(path, mode);
    if (!file) throw std::runtime_error(std::string("cannot open ") + path);
    return file;
}

/** Reads a count and that many elements; false at the end of the file. */
template <class T> static bool read(FILE * file, std::vector<T> & list) {
    uint32_t count;
    if (fread(&count, 4, 1, file) != 1) return false;
    list.resize(count);
    if (fread(list.data(), sizeof(T), count, file) != count) throw std::runtime_error("cut short");
    return true;
}

static void write(FILE * file, const Ids & ids) {
    const uint32_t count = ids.size();
    fwrite(&count, 4, 1, file);
    fwrite(ids.data(), sizeof(llama_token), count, file);
}

static ggml_type cache_type(const std::string & name) {
    if (name == "f32") return GGML_TYPE_F32;
    if (name == "f16") return GGML_TYPE_F16;
    if (name == "q8_0") return GGML_TYPE_Q8_0;
    if (name == "q4_0") return GGML_TYPE_Q4_0;
    throw std::runtime_error("cache type " + name);
}

static llama_context * make_context(llama_model * model, int ctx, ggml_type k, ggml_type v, bool vectors) {
    llama_context_params params = llama_context_default_params();
    const char * threads = getenv("THREADS");
    params.n_ctx = ctx;
    params.n_batch = vectors ? ctx : std::min(ctx, 512);
    params.n_ubatch = params.n_batch;
    params.n_threads = params.n_threads_batch = threads ? atoi(threads) : 1;
    params.type_k = k;
    params.type_v = v;
    params.embeddings = vectors;
    params.flash_attn_type = ggml_is_quantized(v) ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    llama_context * context = llama_init_from_model(model, params);
    if (!context) throw std::runtime_error("no context");
    return context;
}

/**
 * Evaluates `ids` after `start` tokens in pieces, and passes on the logits of the last one and of all from `wanted` on.
 */
template <class F> static void evaluate(llama_context * context, const Ids & ids, int start, size_t wanted, F each) {
    const int size = llama_n_batch(context);
    llama_batch batch = llama_batch_init(size, 0, 1);
    for (size_t first = 0; first < ids.size(); first += size) {
        batch.n_tokens = std::min<size_t>(size, ids.size() - first);
        for (int i = 0; i < batch.n_tokens; i++) {
            batch.token[i] = ids[first + i];
            batch.pos[i] = start + first + i;
            batch.n_seq_id[i] = 1;
            batch.seq_id[i][0] = 0;
            batch.logits[i] = first + i >= wanted || first + i + 1 == ids.size();
        }
        if (llama_decode(context, batch) != 0) throw std::runtime_error("decode failed");
        for (int i = 0; i < batch.n_tokens; i++) if (batch.logits[i]) each(first + i, llama_get_logits_ith(context, i));
    }
    llama_batch_free(batch);
}

static float loss(const float * logits, int count, llama_token id) {
    const float max = *std::max_element(logits, logits + count);
    double sum = 0;
    for (int i = 0; i < count; i++) sum += exp((double) logits[i] - max);
    return (float) (log(sum) + max - logits[id]);
}

static void run(const std::string & what, char ** arguments) {
    if (what == "quantize") {
        llama_model_quantize_params params = llama_model_quantize_default_params();
        params.ftype = (llama_ftype) atoi(arguments[2]);
        params.nthread = atoi(arguments[3]);
        if (llama_model_quantize(arguments[0], arguments[1], &params) != 0) throw std::runtime_error("not quantized");
        return;
    }
    llama_model_params params = llama_model_default_params();
    params.n_gpu_layers = 0;
    params.vocab_only = what == "tokens" || what == "ends";
    llama_model * model = llama_model_load_from_file(arguments[0], params);
    if (!model) throw std::runtime_error("not loaded");
    const llama_vocab * vocab = llama_model_get_vocab(model);
    const int count = llama_vocab_n_tokens(vocab);
    if (what == "ends") {
        FILE * out = open(arguments[2], "wb");
        Ids ids;
        for (llama_token id = 0; id < count; id++) if (llama_vocab_is_eog(vocab, id)) ids.push_back(id);
        write(out, ids);
        if (fclose(out) != 0) throw std::runtime_error("not written");
        return;
    }
    FILE * in = open(arguments[1], "rb"), * out = open(arguments[2], "wb");
    if (what == "tokens") {
        for (std::vector<char> text; read(in, text);) {
            Ids ids(text.size() + 8);
            const int found = llama_tokenize(vocab, text.data(), text.size(), ids.data(), ids.size(), false, atoi(arguments[3]) != 0);
            if (found < 0) throw std::runtime_error("more ids than bytes");
            ids.resize(found);
            write(out, ids);
        }
        if (fclose(out) != 0) throw std::runtime_error("not written");
        return;
    }
    const bool greedy = what == "greedy", vectors = what == "vectors", cached = what == "logits" || what == "losses";
    const ggml_type k = cache_type(cached ? arguments[4] : "f16"), v = cache_type(cached ? arguments[5] : "f16");
    llama_context * context = make_context(model, atoi(arguments[3]), k, v, vectors);
    for (Ids ids; read(in, ids);) {
        if (llama_memory_t memory = llama_get_memory(context)) llama_memory_clear(memory, true);
        if (vectors) {
            evaluate(context, ids, 0, 0, [](size_t, const float *) {});
            fwrite(llama_get_embeddings_seq(context, 0), 4, llama_model_n_embd(model), out);
        } else if (greedy) {
            Ids answer, next = ids;
            for (int start = 0, most = atoi(arguments[4]); (int) answer.size() < most;) {
                llama_token best = 0;
                evaluate(context, next, start, next.size(), [&](size_t, const float * logits) {
                    best = std::max_element(logits, logits + count) - logits;
                });
                start += next.size();
                answer.push_back(best);
                next = {best};
                if (llama_vocab_is_eog(vocab, best)) break;
            }
            write(out, answer);
        } else {
            evaluate(context, ids, 0, what == "losses" ? atoi(arguments[6]) : 0, [&](size_t at, const float * logits) {
                if (what == "logits") fwrite(logits, 4, count, out);
                else if (at + 1 < ids.size()) {
                    const float value = loss(logits, count, ids[at + 1]);
                    fwrite(&value, 4, 1, out);
                }
            });
        }
    }
    if (fclose(out) != 0) throw std::runtime_error("not written");
}

int main(int argc, char ** argv) {
    static const std::vector<std::pair<std::string, int>> needed = {
        {"tokens", 4}, {"ends", 3}, {"logits", 6}, {"losses", 7}, {"greedy", 5}, {"vectors", 4}, {"quantize", 4}};
    llama_log_set([](ggml_log_level level, const char * text, void *) { if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr); }, nullptr);
    try {
        const char * folder = getenv("BACKENDS");
        ggml_backend_load_all_from_path(folder ? folder : ".");
        llama_backend_init();
        for (const auto & [what, more] : needed) if (argc == more + 2 && what == argv[1]) return run(what, argv + 2), 0;
        throw std::runtime_error("expected tokens, ends, logits, losses, greedy, vectors or quantize, and what they take");
    } catch (const std::exception & error) {
        fprintf(stderr, "peer: %s\n", error.what());
        return 1;
    }
}
