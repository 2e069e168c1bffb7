import { jsonReply, type Reply } from './reply.ts'
import { anthropicError, openAiError } from './vendor-errors.ts'

const released = '2026-01-01T00:00:00Z'

const openAiModels = [
  'gpt-5.5',
  'gpt-5.5-mini',
  'gpt-4o',
  'gpt-4o-mini',
  'gpt-3.5-turbo-instruct',
  'scripted-chat',
  'scripted-chat-large',
  'scripted-chat-plain',
  'scripted-chat-reasoning',
]

const anthropicModels = [
  ['claude-opus-4-8', 'Claude Opus 4.8'],
  ['claude-sonnet-4-6', 'Claude Sonnet 4.6'],
  ['claude-haiku-4-5', 'Claude Haiku 4.5'],
  ['scripted-messages', 'Scripted'],
  ['scripted-messages-adaptive', 'Scripted, adaptive thinking'],
  ['scripted-messages-large', 'Scripted, large'],
  ['scripted-messages-thinking', 'Scripted, thinking within a budget'],
] as const

const openAiEntries = openAiModels.map((id) => ({
  id,
  object: 'model',
  created: Date.parse(released) / 1000,
  owned_by: 'local',
}))

const anthropicEntries = anthropicModels.map(([id, name]) => ({
  type: 'model',
  id,
  display_name: name,
  created_at: released,
  lifecycle: 'active',
  line: null,
  max_input_tokens: 200_000,
  max_tokens: 64_000,
  capabilities: null,
  deprecated_at: null,
  retires_at: null,
}))

/**
 * Answers `GET /v1/models` and `GET /v1/models/{id}`. Both vendors use this path; a request that carries
 * `anthropic-version` gets Anthropic's page shape, any other OpenAI's list. Generation accepts any model id.
 */
export function answerModels(id: string | undefined, fromAnthropicClient: boolean): Reply {
  if (fromAnthropicClient) return answerAnthropicModels(id)
  if (id === undefined) {
    return jsonReply('chat', 200, JSON.stringify({ object: 'list', data: openAiEntries }))
  }
  const entry = openAiEntries.find((model) => model.id === id)
  if (entry !== undefined) return jsonReply('chat', 200, JSON.stringify(entry))
  return openAiError(404, {
    message: `The model '${id}' does not exist`,
    param: 'model',
    code: 'model_not_found',
  })
}

function answerAnthropicModels(id: string | undefined): Reply {
  if (id === undefined) {
    const page = {
      data: anthropicEntries,
      has_more: false,
      first_id: anthropicEntries[0]?.id ?? null,
      last_id: anthropicEntries.at(-1)?.id ?? null,
    }
    return jsonReply('messages', 200, JSON.stringify(page))
  }
  const entry = anthropicEntries.find((model) => model.id === id)
  if (entry === undefined) return anthropicError(404, 'not_found_error', `model: ${id}`)
  return jsonReply('messages', 200, JSON.stringify(entry))
}
