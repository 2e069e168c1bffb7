import { describe, expect, it } from 'vitest'
import {
  CHAT_MEMBERS,
  CHAT_MESSAGE_MEMBERS,
  CHAT_PARTS,
} from '../../../../../src/gateway/translation/requests/chat-members.ts'
import { COMPLETION_MEMBERS } from '../../../../../src/gateway/translation/requests/completion-members.ts'
import {
  type MemberRules,
  refuseLostMembers,
} from '../../../../../src/gateway/translation/requests/member-rules.ts'
import {
  MESSAGES_BLOCKS,
  MESSAGES_MEMBERS,
} from '../../../../../src/gateway/translation/requests/messages-members.ts'
import { MESSAGES_TOOL_MEMBERS } from '../fidelity/documented-members.ts'
import { OfficialTypes } from './official-types.ts'

const chat = new OfficialTypes('openai', 'resources/chat/completions/completions.d.ts')
const completions = new OfficialTypes('openai', 'resources/completions.d.ts')
const messages = new OfficialTypes('@anthropic-ai/sdk', 'resources/messages/messages.d.ts')
const beta = new OfficialTypes('@anthropic-ai/sdk', 'resources/beta/messages/messages.d.ts')

const TABLES: Array<[table: string, rules: MemberRules, official: string[]]> = [
  ['chat request', CHAT_MEMBERS, chat.members('ChatCompletionCreateParamsBase')],
  [
    'chat message',
    CHAT_MESSAGE_MEMBERS,
    [
      'ChatCompletionDeveloperMessageParam',
      'ChatCompletionSystemMessageParam',
      'ChatCompletionUserMessageParam',
      'ChatCompletionAssistantMessageParam',
      'ChatCompletionToolMessageParam',
    ].flatMap((name) => chat.members(name)),
  ],
  [
    'chat parts',
    CHAT_PARTS,
    [...chat.kinds('ChatCompletionContentPart'), chat.kind('ChatCompletionContentPartRefusal')],
  ],
  ['messages request', MESSAGES_MEMBERS, messages.members('MessageCreateParamsBase')],
  ['beta messages request', MESSAGES_MEMBERS, beta.members('MessageCreateParamsBase')],
  ['messages blocks', MESSAGES_BLOCKS, messages.kinds('ContentBlockParam')],
  ['beta messages blocks', MESSAGES_BLOCKS, beta.kinds('BetaContentBlockParam')],
  [
    'blocks within results',
    MESSAGES_BLOCKS,
    [messages.kind('ToolReferenceBlockParam'), messages.kind('BrowserStateBlockParam')],
  ],
  ['messages tool', MESSAGES_TOOL_MEMBERS, [...messages.members('Tool'), ...beta.members('BetaTool')]],
  ['completion request', COMPLETION_MEMBERS, completions.members('CompletionCreateParamsBase')],
]

describe('what becomes of the members of a request', () => {
  it.each(TABLES)('is decided for every member that the vendor has: %s', (_table, rules, official) => {
    expect(official.filter((name) => !Object.hasOwn(rules, name))).toEqual([])
  })

  it('reads what the vendors declare', () => {
    expect(chat.members('ChatCompletionCreateParamsBase')).toEqual(
      expect.arrayContaining(['messages', 'web_search_options', 'verbosity']),
    )
    expect(messages.kinds('ContentBlockParam')).toEqual(
      expect.arrayContaining(['text', 'tool_result', 'container_upload']),
    )
  })

  it.each(TABLES)('has a note for every member that is lost: %s', (_table, rules) => {
    for (const [name, rule] of Object.entries(rules)) {
      if (rule.treatment !== 'kept') expect(rule.note, name).not.toBe('')
      if (rule.refuses) expect(rule.treatment, name).toBe('refused')
    }
  })

  it('refuses by the value, and passes members in no table', () => {
    const rules = CHAT_MEMBERS
    expect(() =>
      refuseLostMembers({ n: 1, logprobs: false, audio: null, constructor: 1, new_one: {} }, rules),
    ).not.toThrow()
    expect(() => refuseLostMembers({ n: 2 }, rules)).toThrow('n: only one choice is supported by this model.')
  })
})
