// llama.cpp's logits of a diffusion model, and the answers of its denoising loop, for record-diffusion.ts.
//
//   diffusion-rows MODEL.gguf OUT LENGTH TOKEN TOKEN …
//
// OUT.f32: little-endian float32, (tokens, vocabulary). OUT.i32: little-endian int32, (3 ways, LENGTH), prompts
// included: the likeliest tokens in blocks; drawn tokens by confidence in blocks; drawn tokens by margin in timesteps.
#include "llama.h"
#include "diffusion.cpp"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

int main(int argc, char ** argv) {
    llama_log_set([](ggml_log_level level, const char * text, void *) { if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr); }, nullptr);
    const std::string out = argv[2];
    const int length = atoi(argv[3]);
    std::vector<llama_token> tokens;
    for (int i = 4; i < argc; i++) tokens.push_back(atoi(argv[i]));
    const int count = (int) tokens.size();
    llama_model_params model_params = llama_model_default_params();
    model_params.n_gpu_layers = 0;
    llama_model * model = llama_model_load_from_file(argv[1], model_params);
    if (!model) return 2;
    llama_context_params params = llama_context_default_params();
    params.n_ctx = params.n_batch = params.n_ubatch = 256;
    params.n_threads = params.n_threads_batch = 1;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    llama_context * context = llama_init_from_model(model, params);
    if (!context) return 3;
    const llama_vocab * vocab = llama_model_get_vocab(model);
    const int vocabulary = llama_vocab_n_tokens(vocab);

    llama_set_causal_attn(context, false);
    llama_batch batch = llama_batch_init(count, 0, 1);
    batch.n_tokens = count;
    for (int i = 0; i < count; i++) {
        batch.token[i] = tokens[i];
        batch.pos[i] = i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = 1;
    }
    if (llama_decode(context, batch)) return 4;
    FILE * file = fopen((out + ".f32").c_str(), "wb");
    fwrite(llama_get_logits(context), sizeof(float), (size_t) count * vocabulary, file);
    fclose(file);

    char shifts[8];
    const bool says = llama_model_meta_val_str(model, "diffusion.shift_logits", shifts, sizeof(shifts)) >= 0;
    file = fopen((out + ".i32").c_str(), "wb");
    for (int way = 0; way < 3; way++) {
        diffusion_params how;
        how.shift_logits = !says || strcmp(shifts, "true") == 0;
        how.mask_token_id = llama_vocab_mask(vocab);
        how.seed = 7;
        how.temperature = way == 0 ? 0.0f : 1.0f;
        how.top_k = way == 0 ? 1 : way == 1 ? 0 : vocabulary;
        how.top_p = 1.0f;
        how.max_length = length;
        how.steps = 16;
        how.algorithm = way == 2 ? DIFFUSION_ALGORITHM_MARGIN_BASED : DIFFUSION_ALGORITHM_CONFIDENCE_BASED;
        if (way == 2) {
            how.schedule = DIFFUSION_TRANSFER_SCHEDULE_TIMESTEP_BASED;
            how.eps = 0.001f;
        } else {
            how.schedule = DIFFUSION_TRANSFER_SCHEDULE_BLOCK_BASED;
            how.block_length = length / 4;
        }
        std::vector<llama_token> answer(length);
        int said = 0;
        diffusion_generate(context, tokens.data(), answer.data(), count, how, said);
        if (said != length) return 5;
        fwrite(answer.data(), sizeof(llama_token), length, file);
    }
    fclose(file);
    llama_free(context);
    llama_model_free(model);
}
