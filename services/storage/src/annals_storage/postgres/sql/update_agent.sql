UPDATE annals.agents
SET display_name = CASE WHEN %(set_display_name)s THEN %(display_name)s ELSE display_name END,
    system_prompt = CASE WHEN %(set_system_prompt)s THEN %(system_prompt)s ELSE system_prompt END,
    model = CASE WHEN %(set_model)s THEN %(model)s ELSE model END,
    temperature = CASE WHEN %(set_temperature)s THEN %(temperature)s::double precision ELSE temperature END,
    tools_json = CASE WHEN %(set_tools_json)s THEN %(tools_json)s ELSE tools_json END,
    output_schema_json = CASE WHEN %(set_output_schema_json)s THEN %(output_schema_json)s ELSE output_schema_json END,
    end_user_mode = CASE WHEN %(set_end_user_mode)s THEN %(end_user_mode)s ELSE end_user_mode END,
    context_injection = CASE WHEN %(set_context_injection)s THEN %(context_injection)s ELSE context_injection END,
    provider_logs_enabled = CASE WHEN %(set_provider_logs_enabled)s THEN %(provider_logs_enabled)s::boolean ELSE provider_logs_enabled END,
    index_config = CASE WHEN %(set_index_config)s THEN %(index_config)s ELSE index_config END,
    updated_at = now()
WHERE tenant_id = %(tenant_id)s AND agent_id = %(agent_id)s
RETURNING *
