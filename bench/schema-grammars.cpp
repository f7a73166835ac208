// llama.cpp's grammars of JSON schemas, for schema-peers.ts. Reads a schema a line and writes a line for each: its
// grammar in hex, or "refused" and the reason. Both texts are in hex.

#include "json-schema-to-grammar.h"

#include <iostream>
#include <string>

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

int main() {
    for (std::string line; std::getline(std::cin, line);) {
        try {
            std::cout << to_hex(json_schema_to_grammar(common_json::parse(from_hex(line)), true)) << "\n";
        } catch (const std::exception & e) {
            std::cout << "refused " << to_hex(e.what()) << "\n";
        }
    }
}
