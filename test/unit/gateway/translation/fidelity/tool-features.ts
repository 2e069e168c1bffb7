import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import { becomes, type Group, refused } from './features.ts'

const CLOSED = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}
const OPEN = { type: 'object', properties: { city: { type: 'string' } } }
const chatTool = (more: Json = {}, beside: Json = {}): Json => ({
  type: 'function',
  function: { name: 'look', description: 'Looks.', parameters: CLOSED, ...more },
  ...beside,
})
const messagesTool = (more: Json = {}): Json => ({
  name: 'look',
  description: 'Looks.',
  input_schema: CLOSED,
  ...more,
})
export const CHAT_TOOLS = { tools: [chatTool()] }
export const MESSAGES_TOOLS = { tools: [messagesTool()] }
const TOOL = { chat: ['tools.0'], messages: ['tools.0'] }
const CHOICE = { chat: ['tool_choice', 'parallel_tool_calls'], messages: ['tool_choice'] }
/** Longer than chat completions take it; what it becomes there depends on the name alone. */
export const LONG_NAME = `mcp__${'very_'.repeat(12)}long_name`
export const SHORT_NAME = 'mcp__very_very_very_very_very_very_very_very_very_5b76bf9a401218'

export const toolDefinitions: Group = {
  title: 'Tools',
  features: [
    {
      name: 'Function tool',
      said: { chat: CHAT_TOOLS, messages: MESSAGES_TOOLS },
      places: TOOL,
      expected: {
        'chat:messages': becomes({ 'tools.0': messagesTool() }),
        'messages:chat': becomes({ 'tools.0': chatTool() }),
      },
    },
    {
      name: '`strict`, schema lists all members as required and no others',
      said: {
        chat: { tools: [chatTool({ strict: true })] },
        messages: { tools: [messagesTool({ strict: true })] },
      },
      places: { chat: ['tools.0.function'], messages: TOOL.messages },
      expected: {
        'chat:messages': becomes({ 'tools.0': messagesTool({ strict: true }) }),
        'messages:chat': becomes({ 'tools.0.function': chatTool({ strict: true }).function }),
      },
    },
    {
      name: '`strict`, schema with optional members',
      said: { messages: { tools: [messagesTool({ input_schema: OPEN, strict: true })] } },
      places: { chat: ['tools.0.function.strict'], messages: ['tools.0.strict'] },
      expected: { 'messages:chat': 'dropped' },
      note: 'chat models refuse such a schema as strict',
    },
    {
      name: '`cache_control` of a tool',
      said: {
        chat: { tools: [chatTool({}, { cache_control: { type: 'ephemeral', ttl: '1h' } })] },
        messages: { tools: [messagesTool({ cache_control: { type: 'ephemeral', ttl: '1h' } })] },
      },
      places: { chat: ['tools.0.cache_control'], messages: ['tools.0.cache_control'] },
      expected: { 'messages:chat': 'dropped' },
    },
    {
      name: 'Name of more than 64 characters',
      said: { messages: { tools: [messagesTool({ name: LONG_NAME })] } },
      places: { chat: ['tools.0.function.name'], messages: ['tools.0.name'] },
      expected: {
        'messages:chat': becomes({
          'tools.0.function.name': SHORT_NAME,
        }),
      },
      note: 'shortened; the caller receives its own name',
    },
    {
      name: 'Examples of input',
      said: { messages: { tools: [messagesTool({ input_examples: [{ city: 'Bern' }] })] } },
      places: { chat: ['tools.0.function.input_examples'], messages: ['tools.0.input_examples'] },
      expected: { 'messages:chat': 'dropped' },
    },
    {
      name: 'Custom tool (free text input)',
      said: { chat: { tools: [{ type: 'custom', custom: { name: 'look' } }] } },
      places: TOOL,
      expected: { 'chat:messages': refused('tools of type custom') },
    },
    {
      name: '`functions` (before tools)',
      said: { chat: { functions: [{ name: 'look', parameters: OPEN }] } },
      places: { chat: ['functions'], messages: ['tools'] },
      expected: { 'chat:messages': refused('send them as tools') },
    },
    {
      name: 'Web search of the provider',
      note: 'without `max_uses` it gets 5',
      said: {
        chat: {
          web_search_options: { user_location: { type: 'approximate', approximate: { city: 'Bern' } } },
        },
        messages: { tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
      },
      places: { chat: ['web_search_options'], messages: ['tools.0'] },
      expected: {
        'chat:messages': becomes({
          'tools.0': {
            type: 'web_search_20250305',
            name: 'web_search',
            max_uses: 5,
            user_location: { type: 'approximate', city: 'Bern' },
          },
        }),
        'messages:messages': becomes({
          'tools.0': { type: 'web_search_20250305', name: 'web_search', max_uses: 5 },
        }),
        'messages:chat': refused('tools of type web_search_20250305'),
      },
    },
    {
      name: 'How much to search (`search_context_size`)',
      said: { chat: { web_search_options: { search_context_size: 'high' } } },
      places: {
        chat: ['web_search_options.search_context_size'],
        messages: ['tools.0.search_context_size'],
      },
      expected: { 'chat:messages': 'dropped' },
    },
    {
      name: 'Other tools of the provider (code execution, computer use)',
      said: { messages: { tools: [{ type: 'code_execution_20250825', name: 'code_execution' }] } },
      places: TOOL,
      expected: { 'messages:chat': refused('tools of type code_execution_20250825') },
    },
  ],
}

const choice = (name: string, chat: Json, messages: Json | null, onChat: Json, onMessages: Json) => ({
  name,
  said: {
    chat: { ...CHAT_TOOLS, ...chat },
    ...(messages ? { messages: { ...MESSAGES_TOOLS, ...messages } } : {}),
  },
  places: CHOICE,
  expected: {
    'chat:messages': becomes(onMessages),
    ...(messages ? { 'messages:chat': becomes(onChat) } : {}),
  },
})
const named = { type: 'function', function: { name: 'look' } }

export const toolChoices: Group = {
  title: 'Choice of tools',
  features: [
    choice(
      'The model chooses',
      { tool_choice: 'auto' },
      { tool_choice: { type: 'auto' } },
      { tool_choice: 'auto' },
      { tool_choice: { type: 'auto' } },
    ),
    choice(
      'No tool',
      { tool_choice: 'none' },
      { tool_choice: { type: 'none' } },
      { tool_choice: 'none' },
      { tool_choice: { type: 'none' } },
    ),
    choice(
      'Some tool',
      { tool_choice: 'required' },
      { tool_choice: { type: 'any' } },
      { tool_choice: 'required' },
      { tool_choice: { type: 'any' } },
    ),
    choice(
      'This tool',
      { tool_choice: named },
      { tool_choice: { type: 'tool', name: 'look' } },
      { tool_choice: named },
      { tool_choice: { type: 'tool', name: 'look' } },
    ),
    choice(
      'One call at a time',
      { parallel_tool_calls: false },
      { tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
      { tool_choice: 'auto', parallel_tool_calls: false },
      { tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
    ),
    {
      name: 'One of these tools (`allowed_tools`)',
      said: {
        chat: {
          tools: [chatTool(), chatTool({ name: 'find' })],
          tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [named] } },
        },
      },
      places: { chat: ['tool_choice'], messages: ['tool_choice', 'tools'] },
      expected: {
        'chat:messages': becomes({ tool_choice: { type: 'any' }, tools: [messagesTool()] }),
      },
      note: 'only those are offered',
    },
  ],
}
