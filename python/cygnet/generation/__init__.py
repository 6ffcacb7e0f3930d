"""Deciding which tokens come next: options, sampling, beams, stops, constraints, and the scheduler that runs many requests as one batch.

Knows token ids and an engine (engine_protocol.py), and text only through a TextDecoder that a caller hands in. The way of a request:

    GenerationOptions.create(config_defaults(...), temperature=0.7, ...)      options.py option_checks.py config_defaults.py constraints.py
    Scheduler.submit(Request(prompt_ids, options, decoder, source_ids))       scheduler.py tasks.py; a Handle comes back: handle.py
      -> a Task says what to feed and takes the logits                        sampling_task.py beam_task.py scoring.py
           chooses tokens, ends answers, guesses ahead                        sampling.py stopping.py beam.py speculation.py
      -> run_step: one ragged forward pass for all tasks                      batch.py; computed prompts are kept: prefix_cache.py
      -> Delta after Delta, at last a Generation                              result.py

The inner loops are compiled: _processors, _sampling, _rows and _beam of cygnet._core. docs/generation.md says what every option means.
"""
