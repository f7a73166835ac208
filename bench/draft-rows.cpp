// llama.cpp's output of a model's draft layer, for record-draft-logits.ts.
//
//   draft-rows MODEL.gguf OUT TOKEN TOKEN …
//
// OUT: little-endian float32, (tokens - 1, vocabulary): each row from a token's final hidden state and the next token.
#include "llama.h"
#include "llama-ext.h"
#include <cstdio>
#include <cstdlib>
#include <vector>

static llama_context * context(llama_model * model, llama_context_type type, llama_context * other) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = params.n_batch = params.n_ubatch = 256;
    params.n_threads = params.n_threads_batch = 1;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    params.type_k = params.type_v = GGML_TYPE_F32;
    params.ctx_type = type;
    params.ctx_other = other;
    return llama_init_from_model(model, params);
}

int main(int argc, char ** argv) {
    llama_log_set([](ggml_log_level level, const char * text, void *) { if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr); }, nullptr);
    std::vector<llama_token> tokens;
    for (int i = 3; i < argc; i++) tokens.push_back(atoi(argv[i]));
    const int count = (int) tokens.size(), rows = count - 1;
    llama_model_params params = llama_model_default_params();
    params.n_gpu_layers = 0;
    params.load_mtp = true;
    llama_model * model = llama_model_load_from_file(argv[1], params);
    if (!model) return 2;
    const int dim = llama_model_n_embd(model), vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
    llama_context * whole = context(model, LLAMA_CONTEXT_TYPE_DEFAULT, nullptr);
    llama_context * drafter = context(model, LLAMA_CONTEXT_TYPE_MTP, whole);
    if (!whole || !drafter) return 3;
    llama_set_embeddings_nextn(whole, true, false);
    llama_set_embeddings_nextn(drafter, true, true);
    llama_batch prompt = llama_batch_init(count, 0, 1);
    prompt.n_tokens = count;
    for (int i = 0; i < count; i++) {
        prompt.token[i] = tokens[i];
        prompt.pos[i] = i;
        prompt.n_seq_id[i] = 1;
        prompt.seq_id[i][0] = 0;
        prompt.logits[i] = 1;
    }
    if (llama_decode(whole, prompt)) return 4;
    llama_batch drafts = llama_batch_init(rows, dim, 1);
    std::vector<llama_token> said(tokens.begin() + 1, tokens.end());
    drafts.token = said.data(); // batch_init allocates only one of the two
    drafts.n_tokens = rows;
    for (int i = 0; i < rows; i++) {
        const float * state = llama_get_embeddings_nextn_ith(whole, i);
        for (int j = 0; j < dim; j++) drafts.embd[i * dim + j] = state[j];
        drafts.pos[i] = i + 1;
        drafts.n_seq_id[i] = 1;
        drafts.seq_id[i][0] = 0;
        drafts.logits[i] = 1;
    }
    if (llama_decode(drafter, drafts)) return 5;
    FILE * out = fopen(argv[2], "wb");
    for (int i = 0; i < rows; i++) fwrite(llama_get_logits_ith(drafter, i), 4, vocabulary, out);
    fclose(out);
    return 0;
}
