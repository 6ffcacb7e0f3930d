"""Deciding which tokens come next: options, sampling, beams, stops, constraints, and the scheduler that runs many requests as one batch.

Knows token ids and an engine (engine_protocol), and text only through a TextDecoder that a caller hands in. The way of a request:

    GenerationOptions.create(config_defaults(...), temperature=0.7, ...)      options.py, option_checks.py, config_defaults.py
    Request(prompt_ids, options, decoder, source_ids)                         tasks.py
      -> a Task that plans what to feed and takes the logits                  sampling_task.py, speculation.py
      -> run_step: one ragged forward pass for all tasks                      batch.py
      -> Delta after Delta, at last a Generation                              result.py
"""
