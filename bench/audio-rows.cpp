// llama.cpp's spectrograms and rows of recordings, for record-audio-rows.ts.
//
//   audio-rows MMPROJ.gguf KIND OUT EVERY_FRAME EVERY_ROW FILE …    FILE: float32 samples at 16 kHz
//
// OUT: little-endian int32 and float32. For each recording its number of pieces; for each piece frames, bins and every
// EVERY_FRAMEth frame (bins values); then rows, dim and every EVERY_ROWth row.
#include "clip-impl.h"
#include "ggml-backend.h"
#include "mtmd-audio.h"
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

static std::vector<float> samples_of(const char * path) {
    FILE * file = fopen(path, "rb");
    if (!file) exit(2);
    std::vector<float> samples;
    for (float value; fread(&value, 4, 1, file) == 1;) samples.push_back(value);
    fclose(file);
    return samples;
}
static void put(FILE * out, int32_t value) { fwrite(&value, 4, 1, out); }

static std::unique_ptr<mtmd_audio_preprocessor> preprocessor_of(const std::string & kind, clip_ctx * ctx) {
    if (kind == "qwen3a") return std::make_unique<mtmd_audio_preprocessor_qwen3a>(ctx);
    if (kind == "gemma4a") return std::make_unique<mtmd_audio_preprocessor_gemma4a>(ctx);
    if (kind == "gemma4ua") return std::make_unique<mtmd_audio_preprocessor_gemma4ua>(ctx);
    if (kind == "granite_speech") return std::make_unique<mtmd_audio_preprocessor_granite_speech>(ctx);
    return std::make_unique<mtmd_audio_preprocessor_whisper>(ctx);
}

int main(int argc, char ** argv) {
    ggml_backend_load_all(); // GGML_BACKEND_PATH: the CPU's kernels, if they are a library of their own
    clip_context_params params = {};
    params.flash_attn_type = CLIP_FLASH_ATTN_TYPE_DISABLED;
    params.image_min_tokens = params.image_max_tokens = -1;
    clip_ctx * ctx = clip_init(argv[1], params).ctx_a;
    if (!ctx) return 3;
    auto preprocessor = preprocessor_of(argv[2], ctx);
    preprocessor->initialize();
    FILE * out = fopen(argv[3], "wb");
    const int every_frame = atoi(argv[4]), every_row = atoi(argv[5]);
    for (int i = 6; i < argc; i++) {
        std::vector<float> samples = samples_of(argv[i]);
        std::vector<mtmd_audio_mel> pieces;
        if (!preprocessor->preprocess(samples.data(), samples.size(), pieces)) return 4;
        put(out, (int32_t) pieces.size());
        for (auto & piece : pieces) {
            const int frames = (int) piece.n_len, bins = (int) piece.n_mel;
            const int stride = (int) (piece.data.size() / bins);
            put(out, frames);
            put(out, bins);
            for (int f = 0; f < frames; f += every_frame)
                for (int b = 0; b < bins; b++) fwrite(&piece.data[(size_t) b * stride + f], 4, 1, out);
            clip_image_f32 image;
            image.set_size({frames, bins}, false, true);
            std::vector<float> values((size_t) frames * bins);
            for (int b = 0; b < bins; b++)
                for (int f = 0; f < frames; f++) values[(size_t) b * frames + f] = piece.data[(size_t) b * stride + f];
            image.cpy_buf(values);
            clip_image_f32_batch batch;
            batch.is_audio = true;
            batch.entries.push_back(image);
            const int count = clip_n_output_tokens(ctx, &image), dim = clip_n_mmproj_embd(ctx);
            std::vector<float> rows((size_t) count * dim);
            if (!clip_image_batch_encode(ctx, 1, &batch, rows)) return 5;
            put(out, count);
            put(out, dim);
            for (int row = 0; row < count; row += every_row) fwrite(&rows[(size_t) row * dim], 4, dim, out);
        }
    }
    fclose(out);
    return 0;
}
