# Writes a sentence encoder's folder with a graph, as transformers.js reads it: export-onnx.py MODEL_FOLDER OUT
#
#   python3 -m venv VENV && VENV/bin/pip install torch transformers onnx onnxscript
import os
import shutil
import sys

import torch
from transformers import AutoModel, AutoTokenizer

folder, out = sys.argv[1:]
os.makedirs(os.path.join(out, "onnx"), exist_ok=True)
for name in os.listdir(folder):
    path = os.path.join(folder, name)
    if name.endswith(".json"):
        shutil.copy(path, out)
    elif os.path.isdir(path):
        shutil.copytree(path, os.path.join(out, name), dirs_exist_ok=True)


class States(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, token_type_ids):
        return self.model(input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).last_hidden_state


model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
example = AutoTokenizer.from_pretrained(folder)(["a text", "another one"], padding=True, return_tensors="pt")
names = ["input_ids", "attention_mask", "token_type_ids"]
batch, length = torch.export.Dim("batch"), torch.export.Dim("length", min=2, max=512)
torch.onnx.export(
    States(model),
    tuple(example[name] for name in names),
    os.path.join(out, "onnx/model.onnx"),
    input_names=names,
    output_names=["last_hidden_state"],
    dynamic_shapes=[{0: batch, 1: length}] * 3,
    external_data=False,
)
