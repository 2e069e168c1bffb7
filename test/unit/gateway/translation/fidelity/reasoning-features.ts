import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import { becomes, type Group } from './features.ts'

const BUDGET = ['reasoning', 'json_object', 'json_schema', 'vision']
const ADAPTIVE = [...BUDGET, 'adaptive_thinking']
const THINKING = {
  chat: ['reasoning_effort'],
  messages: ['thinking', 'output_config'],
}
const PLAN: Json = { max_tokens: 8_000 }
const budget = (tokens: number) => ({ thinking: { type: 'enabled', budget_tokens: tokens } })
const effort = (level: string) => ({ reasoning_effort: level })

export const reasoningFeatures: Group = {
  title: 'Reasoning',
  features: [
    {
      name: 'Effort low, model takes a budget',
      capabilities: BUDGET,
      said: { chat: { ...PLAN, ...effort('low') } },
      places: THINKING,
      expected: { 'chat:messages': becomes(budget(2_048)) },
    },
    {
      name: 'Effort high, model takes a budget',
      capabilities: BUDGET,
      said: { chat: { ...PLAN, ...effort('high') } },
      places: THINKING,
      expected: { 'chat:messages': becomes(budget(6_976)) },
      note: '24576 tokens, as far as `max_tokens` leaves 1024 for the answer',
    },
    {
      name: 'Effort none, model takes a budget',
      capabilities: BUDGET,
      said: { chat: { ...PLAN, ...effort('none') } },
      places: THINKING,
      expected: { 'chat:messages': 'dropped' },
      note: 'the same as no member: such models think only on request',
    },
    {
      name: 'Effort, `max_tokens` leaves no room',
      capabilities: BUDGET,
      said: { chat: { max_tokens: 1_500, ...effort('low') } },
      places: THINKING,
      expected: { 'chat:messages': 'dropped' },
    },
    {
      name: 'Effort, model thinks adaptively',
      capabilities: ADAPTIVE,
      said: { chat: { ...PLAN, ...effort('xhigh') } },
      places: THINKING,
      expected: {
        'chat:messages': becomes({ thinking: { type: 'adaptive' }, output_config: { effort: 'high' } }),
      },
    },
    {
      name: 'Effort none, model thinks adaptively',
      capabilities: ADAPTIVE,
      said: { chat: { ...PLAN, ...effort('none') } },
      places: THINKING,
      expected: { 'chat:messages': becomes({ output_config: { effort: 'low' } }) },
      note: 'the lowest effort, because some of them refuse to disable thinking',
    },
    {
      name: 'Effort, model that does not reason',
      said: { chat: effort('high'), messages: { output_config: { effort: 'high' } } },
      places: THINKING,
      expected: { 'chat:messages': 'dropped', 'messages:chat': 'dropped' },
      note: 'between equal protocols the provider decides',
    },
    {
      name: 'Effort beside a tool that must be called',
      capabilities: BUDGET,
      said: {
        chat: {
          ...PLAN,
          ...effort('high'),
          tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }],
          tool_choice: 'required',
        },
      },
      places: THINKING,
      expected: { 'chat:messages': 'dropped' },
      note: 'providers of messages do not allow thinking then',
    },
    {
      name: '`thinking` with a budget',
      capabilities: BUDGET,
      said: { messages: { ...PLAN, ...budget(4_000) }, chat: { ...PLAN, ...budget(4_000) } },
      places: { chat: ['thinking', 'reasoning_effort'], messages: ['thinking'] },
      expected: { 'messages:chat': becomes({ reasoning_effort: 'medium' }) },
      note: 'up to 2048 low, up to 8192 medium, else high',
    },
    {
      name: '`thinking` adaptive, with an effort',
      capabilities: ADAPTIVE,
      said: { messages: { ...PLAN, thinking: { type: 'adaptive' }, output_config: { effort: 'max' } } },
      places: THINKING,
      expected: { 'messages:chat': becomes({ reasoning_effort: 'high' }) },
    },
    {
      name: '`thinking` adaptive alone',
      capabilities: ADAPTIVE,
      said: { messages: { ...PLAN, thinking: { type: 'adaptive' } } },
      places: THINKING,
      expected: { 'messages:chat': 'dropped' },
      note: 'the model’s own default',
    },
    {
      name: '`thinking` disabled',
      capabilities: BUDGET,
      said: { messages: { ...PLAN, thinking: { type: 'disabled' } } },
      places: THINKING,
      expected: { 'messages:chat': becomes({ reasoning_effort: 'low' }) },
      note: 'the lowest effort that every chat model that reasons supports',
    },
    {
      name: '`thinking` beside tools, model takes tools only without reasoning',
      capabilities: [...BUDGET, 'tools_without_reasoning'],
      said: {
        messages: {
          ...PLAN,
          ...budget(4_000),
          tools: [{ name: 'look', input_schema: { type: 'object' } }],
        },
      },
      places: THINKING,
      expected: { 'messages:chat': becomes({ reasoning_effort: 'none' }) },
    },
  ],
}
