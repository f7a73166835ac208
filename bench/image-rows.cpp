// llama.cpp's processing of pictures that are cut into slices: sizes, pixels and rows, for record-image-rows.ts.
//
//   image-rows MMPROJ.gguf OUT WIDTHxHEIGHT=FILE …    FILE: bytes of red, green and blue
//
// OUT: little-endian int32 and float32. For each picture its number of parts; for each part width, height, values, then
// its pixels (height, width, 3) and values.
#include "clip-impl.h"
#include "mtmd-image.h"
#include <cstdio>
#include <cstdlib>

static std::vector<uint8_t> bytes_of(const char * path) {
    FILE * file = fopen(path, "rb");
    if (!file) exit(2);
    std::vector<uint8_t> bytes;
    for (int c; (c = fgetc(file)) != EOF;) bytes.push_back((uint8_t) c);
    fclose(file);
    return bytes;
}
static void put(FILE * out, int32_t value) { fwrite(&value, 4, 1, out); }

int main(int argc, char ** argv) {
    clip_context_params params = {};
    params.flash_attn_type = CLIP_FLASH_ATTN_TYPE_DISABLED;
    params.image_min_tokens = params.image_max_tokens = -1;
    clip_ctx * ctx = clip_init(argv[1], params).ctx_v;
    if (!ctx) return 3;
    FILE * out = fopen(argv[2], "wb");
    for (int i = 3; i < argc; i++) {
        int width, height, at;
        if (sscanf(argv[i], "%dx%d=%n", &width, &height, &at) != 2) return 4;
        clip_image_u8 picture;
        picture.set_size({width, height}, false);
        picture.cpy_buf(bytes_of(argv[i] + at));
        mtmd_image_preproc_out parts = mtmd_image_preprocessor_llava_uhd(ctx).preprocess(picture);
        parts.entries.insert(parts.entries.begin(), parts.overview);
        put(out, (int32_t) parts.entries.size());
        for (auto & part : parts.entries) {
            std::vector<float> rows;
            rows.resize((size_t) clip_n_output_tokens(ctx, &part) * clip_n_mmproj_embd(ctx));
            if (!clip_image_encode(ctx, 1, &part, rows)) return 5;
            put(out, part.nx());
            put(out, part.ny());
            put(out, (int32_t) rows.size());
            fwrite(part.get_ro_buf().data(), 4, part.get_ro_buf().size(), out);
            fwrite(rows.data(), 4, rows.size(), out);
        }
    }
    fclose(out);
    return 0;
}
