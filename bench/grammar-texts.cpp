// llama.cpp's grammars on given texts, for grammars.ts. Reads lines, all texts in hex:
//   grammar TEXT | match TEXT | write SEED
// and writes a line for each: "ok" or "refused" for a grammar, "yes" or "no" for a text that matches all of the last
// grammar, and a text that it allows (hex), chosen at random from ASCII and a few others; "-" where it finds no end.

#include "llama-grammar.h"

#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

static std::string from_hex(const std::string & hex) {
    std::string text;
    for (size_t i = 0; i + 1 < hex.size(); i += 2) text.push_back((char) std::stoi(hex.substr(i, 2), nullptr, 16));
    return text;
}

static std::string to_hex(const std::string & text) {
    static const char * digits = "0123456789abcdef";
    std::string hex;
    for (unsigned char c : text) { hex.push_back(digits[c >> 4]); hex.push_back(digits[c & 15]); }
    return hex;
}

static bool is_over(llama_grammar * grammar) {
    for (const auto & stack : llama_grammar_get_stacks(grammar)) if (stack.empty()) return true;
    return false;
}

// False if the grammar does not allow it; then the grammar is unusable.
static bool take(llama_grammar * grammar, const std::string & text) {
    try { llama_grammar_accept_str(*grammar, text); } catch (const std::exception &) { return false; }
    return !llama_grammar_get_stacks(grammar).empty();
}

static std::string random_text(const llama_grammar & grammar, unsigned seed) {
    static const std::vector<std::string> others = { "\n", "\t", "\xc3\xa9", "\xe4\xb8\xad", "\xe3\x81\x81", "\xf0\x9f\x98\x80" };
    std::mt19937 random(seed);
    llama_grammar * now = llama_grammar_clone_impl(grammar);
    std::string text;
    for (int i = 0; i < 200; i++) {
        if (is_over(now) && random() % 4 == 0) break;
        std::vector<std::pair<std::string, llama_grammar *>> allowed;
        for (int c = 32; c < 127 + (int) others.size(); c++) {
            const std::string piece = c < 127 ? std::string(1, (char) c) : others[c - 127];
            llama_grammar * next = llama_grammar_clone_impl(*now);
            if (take(next, piece)) allowed.emplace_back(piece, next);
            else llama_grammar_free_impl(next);
        }
        if (allowed.empty()) break;
        const size_t at = random() % allowed.size();
        text += allowed[at].first;
        llama_grammar_free_impl(now);
        now = allowed[at].second;
        for (size_t j = 0; j < allowed.size(); j++) if (j != at) llama_grammar_free_impl(allowed[j].second);
    }
    const bool whole = is_over(now);
    llama_grammar_free_impl(now);
    return whole ? to_hex(text) : "-";
}

int main() {
    llama_grammar * grammar = nullptr;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream in(line);
        std::string word, hex;
        in >> word >> hex;
        if (word == "grammar") {
            if (grammar) llama_grammar_free_impl(grammar);
            grammar = llama_grammar_init_impl(nullptr, from_hex(hex).c_str(), "root", false, nullptr, 0, nullptr, 0);
            std::cout << (grammar ? "ok" : "refused") << "\n";
        } else if (!grammar) std::cout << "no\n";
        else if (word == "match") {
            llama_grammar * copy = llama_grammar_clone_impl(*grammar);
            const bool fits = take(copy, from_hex(hex)) && is_over(copy);
            llama_grammar_free_impl(copy);
            std::cout << (fits ? "yes" : "no") << "\n";
        } else std::cout << random_text(*grammar, (unsigned) std::stoul(hex)) << "\n";
    }
}
