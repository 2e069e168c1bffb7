/**
 * Members by which routers and proxies in front of several models select another one, its provider, or an address:
 * OpenRouter (https://openrouter.ai/docs/features/model-routing, /docs/features/provider-routing), LiteLLM
 * (https://docs.litellm.ai/docs/proxy/reliability), Vercel (https://vercel.com/docs/ai-gateway/provider-options).
 */
export const ROUTING_OF_PROXIES: readonly string[] = [
  'api_base',
  'api_key',
  'api_version',
  'base_url',
  'content_policy_fallbacks',
  'context_window_fallbacks',
  'custom_llm_provider',
  'deployment_id',
  'extra_body',
  'extra_headers',
  'fallbacks',
  'model_list',
  'models',
  'plugins',
  'preset',
  'provider',
  'provider_options',
  'provideroptions',
  'route',
  'router',
  'routing',
  'tags',
  'transforms',
  'user_config',
]
