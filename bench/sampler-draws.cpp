// llama.cpp's samplers on given logits, for samplers.ts. Reads lines of one word and its values:
//   model FILE | logits N FILE | history ID… | case NAME WHAT… | draws N SEED
// and after each case writes a line: its name, then ID:PROBABILITY of the remaining tokens, then (draws > 0) ID:COUNT.

#include "llama.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

static const llama_vocab * vocabulary;
static std::vector<float> logits;
static std::vector<llama_token> history;
static int draws = 0;
static uint32_t seed = 1;

static llama_sampler * sampler(std::istringstream & in, const std::string & name, uint32_t own_seed) {
    const auto number = [&in]() { double value; in >> value; return value; };
    if (name == "penalties") { const int n = number(); const float r = number(), f = number(), p = number(); return llama_sampler_init_penalties(llama_vocab_n_tokens(vocabulary), n, r, f, p); }
    if (name == "dry") {
        const float multiplier = number(), base = number();
        const int allowed = number(), last = number(), count = number();
        std::vector<std::string> texts(count);
        for (auto & text : texts) { std::string hex; in >> hex; for (size_t i = 0; i + 1 < hex.size(); i += 2) text.push_back((char) std::stoi(hex.substr(i, 2), nullptr, 16)); }
        std::vector<const char *> pointers;
        for (auto & text : texts) pointers.push_back(text.c_str());
        return llama_sampler_init_dry(vocabulary, multiplier, base, allowed, last, pointers.data(), pointers.size());
    }
    if (name == "top_n_sigma") return llama_sampler_init_top_n_sigma(number());
    if (name == "top_k") return llama_sampler_init_top_k(number());
    if (name == "typ_p") { const float p = number(); return llama_sampler_init_typical(p, number()); }
    if (name == "top_p") { const float p = number(); return llama_sampler_init_top_p(p, number()); }
    if (name == "min_p") { const float p = number(); return llama_sampler_init_min_p(p, number()); }
    if (name == "xtc") { const float p = number(), t = number(); return llama_sampler_init_xtc(p, t, number(), own_seed); }
    if (name == "temperature") { const float t = number(), r = number(); return llama_sampler_init_temp_ext(t, r, number()); }
    if (name == "mirostat") { const float tau = number(), eta = number(); return llama_sampler_init_mirostat(llama_vocab_n_tokens(vocabulary), own_seed, tau, eta, 100); }
    if (name == "mirostat_2") { const float tau = number(), eta = number(); return llama_sampler_init_mirostat_v2(own_seed, tau, eta); }
    fprintf(stderr, "unknown sampler %s\n", name.c_str());
    exit(2);
}

static std::vector<llama_token_data> candidates() {
    std::vector<llama_token_data> all;
    for (size_t id = 0; id < logits.size(); id++) all.push_back({ (llama_token) id, logits[id], 0.0f });
    return all;
}

static void run(const std::string & line) {
    std::istringstream in(line);
    std::string word, name;
    in >> word >> name;
    llama_sampler * chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
    while (in >> word) llama_sampler_chain_add(chain, sampler(in, word, seed));
    for (llama_token token : history) llama_sampler_accept(chain, token);
    auto all = candidates();
    llama_token_data_array left = { all.data(), all.size(), -1, false };
    llama_sampler_apply(chain, &left);
    double sum = 0, max = -INFINITY;
    for (size_t i = 0; i < left.size; i++) max = std::fmax(max, left.data[i].logit);
    for (size_t i = 0; i < left.size; i++) sum += std::exp(left.data[i].logit - max);
    printf("%s", name.c_str());
    for (size_t i = 0; i < left.size; i++)
        if (left.data[i].logit != -INFINITY) printf(" %d:%.9g", left.data[i].id, std::exp(left.data[i].logit - max) / sum);
    printf("\n%s", name.c_str());
    if (left.selected < 0) llama_sampler_chain_add(chain, llama_sampler_init_dist(seed)); // mirostat draws by itself
    std::map<llama_token, int> counts;
    for (int i = 0; i < draws; i++) {
        auto again = candidates();
        llama_token_data_array given = { again.data(), again.size(), -1, false };
        llama_sampler_apply(chain, &given); // without accept, so that each draw has the same history
        counts[given.data[given.selected].id]++;
    }
    for (auto & each : counts) printf(" %d:%d", each.first, each.second);
    printf("\n");
    llama_sampler_free(chain);
}

int main() {
    llama_log_set([](ggml_log_level level, const char * text, void *) { if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr); }, nullptr);
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream in(line);
        std::string word;
        in >> word;
        if (word == "model") {
            std::string file;
            in >> file;
            llama_model_params params = llama_model_default_params();
            params.vocab_only = true;
            llama_model * model = llama_model_load_from_file(file.c_str(), params);
            if (!model) return 3;
            vocabulary = llama_model_get_vocab(model);
        } else if (word == "logits") {
            logits.clear();
            for (double value; in >> value;) logits.push_back(value);
        } else if (word == "history") {
            history.clear();
            for (llama_token token; in >> token;) history.push_back(token);
        } else if (word == "draws") in >> draws >> seed;
        else if (word == "case") run(line);
    }
    return 0;
}
