import { assistant, becomes, conversation, type Group, refused, text, user } from './features.ts'

const HELLO = user('Hello')
const HELLO_BLOCK = user([text('Hello')])
const MARK = { type: 'ephemeral', ttl: '1h' }
const BRIEF = 'Be brief.'
const ALL = ['messages']
const SYSTEM = { chat: ['messages.0'], messages: ['system'] }

export const conversationFeatures: Group = {
  title: 'Conversation',
  features: [
    {
      name: 'System prompt',
      said: { chat: conversation({ role: 'system', content: BRIEF }, HELLO), messages: { system: BRIEF } },
      places: SYSTEM,
      expected: {
        'chat:messages': becomes({ system: [text(BRIEF)] }),
        'messages:chat': becomes({ 'messages.0': { role: 'system', content: BRIEF } }),
      },
      note: '`system` on messages, a `system` message on chat',
    },
    {
      name: 'Developer message',
      said: { chat: conversation({ role: 'developer', content: BRIEF }, HELLO) },
      places: SYSTEM,
      expected: { 'chat:messages': becomes({ system: [text(BRIEF)] }) },
      note: 'the same as a system message',
    },
    {
      name: 'System prompt in several parts',
      said: {
        chat: conversation({ role: 'system', content: [text(BRIEF), text('Be kind.')] }, HELLO),
        messages: { system: [text(BRIEF), text('Be kind.')] },
      },
      places: SYSTEM,
      expected: {
        'chat:messages': becomes({ system: [text(BRIEF), text('Be kind.')] }),
        'messages:chat': becomes({ 'messages.0': { role: 'system', content: `${BRIEF}\n\nBe kind.` } }),
      },
      note: 'on chat one text, with an empty line between the parts',
    },
    {
      name: 'System message amid the conversation',
      said: { chat: conversation(HELLO, { role: 'system', content: BRIEF }, user('And now?')) },
      places: { chat: ALL, messages: ['system', 'messages'] },
      expected: {
        'chat:messages': becomes({
          system: [text(BRIEF)],
          messages: [user([text('Hello'), text('And now?')])],
        }),
      },
      note: 'moved to the start: messages has one system prompt',
    },
    {
      name: 'Turns of user and assistant',
      said: {
        chat: conversation(HELLO, assistant('Hi.'), user('And now?')),
        messages: conversation(HELLO, assistant('Hi.'), user('And now?')),
      },
      places: { chat: ALL, messages: ALL },
      expected: {
        'chat:messages': becomes({
          messages: [HELLO_BLOCK, assistant([text('Hi.')]), user([text('And now?')])],
        }),
      },
    },
    {
      name: 'Text in several parts',
      said: {
        chat: conversation(user([text('Hello'), text('again')])),
        messages: conversation(user([text('Hello'), text('again')])),
      },
      places: { chat: ALL, messages: ALL },
      expected: {},
    },
    {
      name: 'Assistant’s text in several parts',
      said: {
        chat: conversation(HELLO, assistant([text('Hi'), text(' there.')]), user('And now?')),
        messages: conversation(HELLO, assistant([text('Hi'), text(' there.')]), user('And now?')),
      },
      places: { chat: ['messages.1.content'], messages: ['messages.1.content'] },
      expected: { 'messages:chat': becomes({ 'messages.1.content': 'Hi there.' }) },
      note: 'on chat joined without a separator',
    },
    {
      name: 'Several messages of one role in a row',
      said: { chat: conversation(HELLO, user('Anybody?')) },
      places: { chat: ALL, messages: ALL },
      expected: { 'chat:messages': becomes({ messages: [user([text('Hello'), text('Anybody?')])] }) },
      note: 'one turn of several blocks',
    },
    {
      name: 'Conversation that the assistant begins',
      said: { chat: conversation(assistant('Hi.'), HELLO) },
      places: { chat: ALL, messages: ALL },
      expected: {
        'chat:messages': becomes({
          messages: [
            user([text('(The assistant begins the conversation.)')]),
            assistant([text('Hi.')]),
            HELLO_BLOCK,
          ],
        }),
      },
      note: 'preceded by a turn of the user that states this',
    },
    {
      name: 'Beginning of the answer (prefill), model takes one',
      said: {
        chat: conversation(HELLO, assistant('Hi, ')),
        messages: conversation(HELLO, assistant('Hi,')),
      },
      places: { chat: ['messages.-1'], messages: ['messages.-1'] },
      expected: {
        'chat:messages': becomes({ 'messages.-1': assistant([text('Hi,')]) }),
        'messages:chat': refused('prefill'),
      },
      note: 'chat models begin a new answer, which would not continue the text',
    },
    {
      name: 'Beginning of the answer (prefill), model that thinks adaptively',
      capabilities: ['reasoning', 'adaptive_thinking', 'json_schema', 'vision'],
      said: {
        chat: conversation(HELLO, assistant('Hi, ')),
        messages: conversation(HELLO, assistant('Hi,')),
      },
      places: { chat: ['messages.-1'], messages: ['messages.1', 'messages.2'] },
      expected: {
        'chat:messages': becomes({
          'messages.1': assistant([text('Hi, ')]),
          'messages.2': user([text('(Continue from where you left off.)')]),
        }),
        'messages:messages': 'kept',
        'messages:chat': refused('prefill'),
      },
      note: 'such models refuse it; a turn of the user asks to continue',
    },
    {
      name: 'Texts of white space alone',
      said: {
        chat: conversation(user([text('Hello'), text(' \n')])),
        messages: conversation(user([text('Hello'), text(' \n')])),
      },
      places: { chat: ['messages.0.content.1'], messages: ['messages.0.content.1'] },
      expected: { 'chat:messages': 'dropped' },
      note: 'providers of messages refuse them',
    },
    {
      name: 'Name of a participant',
      said: { chat: conversation({ ...HELLO, name: 'ada' }) },
      places: { chat: ['messages.0.name'], messages: ['messages.0.name'] },
      expected: { 'chat:messages': 'dropped' },
    },
    {
      name: 'Earlier refusal',
      said: { chat: conversation(HELLO, assistant(null, { refusal: 'No.' }), user('Please.')) },
      places: { chat: ['messages.1.refusal'], messages: ['messages.1.content'] },
      expected: { 'chat:messages': becomes({ 'messages.1.content': [text('No.')] }) },
      note: 'text of the assistant',
    },
  ],
}

export const cacheFeatures: Group = {
  title: 'Prompt cache',
  features: [
    {
      name: '`cache_control` of a part, with its ttl',
      said: {
        chat: conversation(user([text('Hello', { cache_control: MARK })])),
        messages: conversation(user([text('Hello', { cache_control: MARK })])),
      },
      places: {
        chat: ['messages.0.content.0.cache_control'],
        messages: ['messages.0.content.0.cache_control'],
      },
      expected: { 'messages:chat': 'dropped' },
      note: 'chat has no markers',
    },
    {
      name: '`cache_control` of the system prompt',
      said: {
        chat: conversation({ role: 'system', content: [text(BRIEF, { cache_control: MARK })] }, HELLO),
        messages: { system: [text(BRIEF, { cache_control: MARK })] },
      },
      places: { chat: ['messages.0.content.0.cache_control'], messages: ['system.0.cache_control'] },
      expected: {
        'chat:messages': becomes({ 'system.0.cache_control': MARK }),
        'messages:chat': 'dropped',
      },
    },
    {
      name: '`cache_control` of a message',
      said: { chat: conversation({ ...HELLO, cache_control: MARK }) },
      places: { chat: ['messages.0.cache_control'], messages: ['messages.0.content.0.cache_control'] },
      expected: { 'chat:messages': becomes({ 'messages.0.content.0.cache_control': MARK }) },
      note: 'on the last block of the message',
    },
    {
      name: '`cache_control` of the request',
      said: { messages: { cache_control: MARK } },
      places: { chat: ['cache_control'], messages: ['cache_control'] },
      expected: { 'messages:messages': 'dropped', 'messages:chat': 'dropped' },
      note: 'removed on every call (interface)',
    },
    {
      name: '`prompt_cache_key`, `prompt_cache_retention`',
      said: { chat: { prompt_cache_key: 'k', prompt_cache_retention: '24h' } },
      places: {
        chat: ['prompt_cache_key', 'prompt_cache_retention'],
        messages: ['prompt_cache_key', 'prompt_cache_retention', 'cache_control'],
      },
      expected: { 'chat:messages': 'dropped' },
    },
  ],
}
