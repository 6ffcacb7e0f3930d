"""Renders templates that use the features real chat templates use, through transformers: tests/golden/chat_templates.json.

python tools/make_chat_golden.py            # needs transformers and jinja2
"""

import json
from itertools import product
from pathlib import Path

from transformers.utils.chat_template_utils import render_jinja_template

TEMPLATES = {
    "chatml with a default system message": """
{%- for message in messages -%}
    {%- if loop.first and message['role'] != 'system' -%}
        {{- '<|im_start|>system\\nYou are helpful.<|im_end|>\\n' -}}
    {%- endif -%}
    {{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
""",
    "block white space": """{% for m in messages %}
    {% if m.role == 'system' %}
        <<{{ m.content | trim }}>>
    {% else %}
  {{ m.role | upper }}: {{ m.content }}
    {% endif %}
{% endfor %}
{% if add_generation_prompt %}
ASSISTANT:
{%- endif %}
""",
    "namespace, macro and slices": """
{%- macro turn(role, text) -%}{{ '[' ~ role ~ ']' }}{{ text.strip() }}{{ eos_token }}{%- endmacro -%}
{%- set ns = namespace(count=0, system='') -%}
{%- if messages[0].role == 'system' -%}
    {%- set ns.system = messages[0].content -%}{%- set rest = messages[1:] -%}
{%- else -%}{%- set rest = messages -%}{%- endif -%}
{{- bos_token -}}
{%- for m in rest -%}
    {%- set ns.count = ns.count + 1 -%}
    {{- turn(m.role, (ns.system + '\\n\\n' if loop.first and ns.system else '') + m.content) -}}
    {%- if loop.last and not add_generation_prompt -%}{{- '#' ~ ns.count -}}{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}[assistant]{%- endif -%}
""",
    "tools as json": """
{%- if tools is defined and tools is not none -%}
TOOLS {{ tools | tojson }}
COMPACT {{ tools | tojson(separators=(',', ':')) }}
PRETTY {{ tools | tojson(indent=4) }}
{% endif -%}
{%- for m in messages -%}
{{ m.role }}={{ m.content | default('none', true) | tojson }}
{% if m.tool_calls is defined %}CALLS {{ m.tool_calls | map(attribute='function') | list | tojson }}
{% endif -%}
{%- endfor -%}
""",
    "selection and loop controls": """
{%- for m in messages | selectattr('role', 'ne', 'system') -%}
    {%- if loop.index0 is divisibleby(2) and m.role == 'assistant' -%}{%- continue -%}{%- endif -%}
    {{- loop.index ~ ':' ~ m.content.split('\\n')[0][:12].rstrip() ~ ('!' if m.content.startswith('Hi') else '?') -}}
    {%- if loop.index > 3 -%}{%- break -%}{%- endif -%}
{%- endfor -%}
{{- '|' ~ (messages | map(attribute='role') | join(',')) ~ '|' ~ messages | length -}}
""",
    "reasoning taken out": """
{%- for m in messages -%}
    {%- set content = m.content -%}
    {%- if m.role == 'assistant' and '</think>' in content -%}
        {%- set content = content.split('</think>')[-1].lstrip('\\n') -%}
    {%- endif -%}
<|{{ m.role }}|>
{% generation %}{{ content }}{% endgeneration %}<|end|>
{% endfor -%}
{%- if add_generation_prompt -%}<|assistant|>
{% endif -%}
""",
    "parts": """
{%- for m in messages -%}
{{ m.role }}:
{%- if m.content is string -%}{{ m.content }}
{%- else -%}{%- for part in m.content -%}{%- if part.type == 'text' -%}({{ part.text }}){%- endif -%}{%- endfor -%}{%- endif -%};
{%- endfor -%}
""",
}

CONVERSATIONS = {
    "single": [{"role": "user", "content": "Hi there"}],
    "turns": [
        {"role": "user", "content": "Hi\nsecond line  "},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\nYes?"},
        {"role": "user", "content": 'Größe, 東京, "quotes" & <b>'},
    ],
    "system": [{"role": "system", "content": " Be short. "}, {"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Because."}],
    "calls": [
        {"role": "user", "content": "Weather in Łódź?"},
        {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "weather", "arguments": {"city": "Łódź"}}}]},
        {"role": "tool", "content": '{"degrees": 7}'},
    ],
}
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "Says how warm it is <°C>.", "parameters": {"type": "object"}}}]
VARIABLES = {"bos_token": "<s>", "eos_token": "</s>"}


def main():
    cases = []
    for (name, template), (key, conversation), tools, add in product(TEMPLATES.items(), CONVERSATIONS.items(), (None, TOOLS), (False, True)):
        rendered, _ = render_jinja_template([conversation], tools=tools, chat_template=template, add_generation_prompt=add, **VARIABLES)
        cases.append({"template": name, "conversation": key, "tools": tools is not None, "add_generation_prompt": add, "rendered": rendered[0]})
    golden = {"templates": TEMPLATES, "conversations": CONVERSATIONS, "tools": TOOLS, "variables": VARIABLES, "cases": cases}
    path = Path(__file__).parent.parent / "tests/golden/chat_templates.json"
    path.write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
