import { join } from 'node:path'
import {
  CHAT_MEMBERS,
  CHAT_MESSAGE_MEMBERS,
  CHAT_PARTS,
} from '../../../../../src/gateway/translation/requests/chat-members.ts'
import { COMPLETION_MEMBERS } from '../../../../../src/gateway/translation/requests/completion-members.ts'
import type { MemberRules } from '../../../../../src/gateway/translation/requests/member-rules.ts'
import {
  MESSAGES_BLOCKS,
  MESSAGES_MEMBERS,
} from '../../../../../src/gateway/translation/requests/messages-members.ts'
import { RESPONSES_ITEMS } from '../../../../../src/gateway/translation/requests/responses-items.ts'
import { ANSWER_GROUPS, REQUEST_GROUPS } from './cases.ts'
import { MESSAGES_TOOL_MEMBERS, RESPONSES_MEMBERS, RESPONSES_PARTS } from './documented-members.ts'
import { type AnswerFeature, type Feature, type Group, pairs } from './features.ts'
import { type Observation, observeAnswer, observeRequest } from './verdicts.ts'

export const FIDELITY_FILE = join(import.meta.dirname, '../../../../../docs/fidelity.md')

/** The whole of docs/fidelity.md, from what the gateway's code makes of every case. */
export async function fidelityDocument(): Promise<string> {
  const requests = await table(REQUEST_GROUPS, async (feature) => observeRequest(feature))
  const answers = await table(ANSWER_GROUPS, (feature) =>
    observeAnswer(feature, (feature.forms ?? ['whole'])[0] ?? 'whole'),
  )
  const members = MEMBER_TABLES.map(memberTable)
  return [INTRODUCTION, REQUESTS, requests, ANSWERS, answers, MEMBERS, ...members].join('\n\n').concat('\n')
}

const INTRODUCTION = `# What survives between protocols

<!-- Generated from test/unit/gateway/translation/fidelity by \`npm run generate:fidelity\`; do not edit. -->

Every model can be called as chat completions, as messages and as legacy completions, whatever its provider speaks. Where
you speak the provider's own protocol, your bytes pass. Where you do not, the call is translated, and some things have no
words on the other side. This page says what becomes of each of them. It is generated from tests that put every line
through the code that serves calls, so it says what happens, not what is planned.

Columns say how you call, then what the model's provider speaks: chat → messages is an OpenAI client with a Claude model,
messages → chat an Anthropic client (or Claude Code) with an OpenAI model. Completions reach a provider's own completions
only for models with the capability \`completions\`; all others are asked as a chat.

| | |
|---|---|
| kept | arrives as it was said: the same value under the same name |
| translated | arrives in the other protocol's words |
| *dropped* | is left out: it only tunes, or means something to its own provider only |
| **refused** | 400 \`invalid_request_error\` that names the member: without it the answer would mean something else |
| (empty) | cannot be said in that protocol |

In short: conversations, images, PDFs, function tools and their results, JSON schemas, limits, reasoning effort, stop
reasons and usage go across in both directions. Cache markers and web search reach Claude models from chat clients too.
Signatures of thinking, citations of documents, log probabilities, several choices, sound, files by id and tools that run
at the provider stay within their family. If you depend on one of those, call the model in its provider's protocol.`

const REQUESTS = `## Requests

Models differ in what they can do. Lines that say nothing of the model are about one that does not reason and has JSON
modes. A line for models that reason says so, because what such models refuse is left out for them.`

const ANSWERS = `## Answers

Whole answers and streams say the same: every line is tested in both forms where both have it.`

const MEMBERS = `## Every member

The decisions that translation makes, from the tables in \`src/gateway/translation/requests\`. Members that stand in no
table are dropped on translated calls. \`null\` counts as absent. Completions on a messages provider go by their own table
first, then by those of chat completions; so do the members of a response, whose items become turns of messages directly.
Responses are always translated, and a member that is not told to the model (such as \`store\`) is in none of these tables.`

const HEADINGS = pairs.map(({ caller, upstream }) => `${caller} → ${upstream}`)

async function table<Kind extends Feature>(
  groups: ReadonlyArray<Group<Kind>>,
  observe: (feature: Kind) => Promise<Observation[]>,
): Promise<string> {
  const rows: string[] = [row(['', ...HEADINGS, 'how, or why']), row(['', ...HEADINGS, ''].map(() => '---'))]
  for (const { title, features } of groups) {
    rows.push(row([`**${title}**`, ...HEADINGS.map(() => ''), '']))
    for (const feature of features) rows.push(featureRow(feature, await observe(feature)))
  }
  return rows.join('\n')
}

function featureRow(feature: Feature | AnswerFeature, observations: readonly Observation[]): string {
  const cells = pairs.map(({ name }) => {
    const observed = observations.find(({ pair }) => pair.name === name)
    return observed ? WORDS[observed.verdict] : ''
  })
  return row([feature.name, ...cells, feature.note ?? ''])
}

const WORDS: Record<Observation['verdict'], string> = {
  kept: 'kept',
  translated: 'translated',
  dropped: '*dropped*',
  refused: '**refused**',
  changed: '(untested)',
}

const row = (cells: readonly string[]) =>
  `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`

const MEMBER_TABLES: ReadonlyArray<[title: string, rules: MemberRules]> = [
  ['Chat completions → messages: the request', CHAT_MEMBERS],
  ['Chat completions → messages: one message', CHAT_MESSAGE_MEMBERS],
  ['Chat completions → messages: parts of a content', CHAT_PARTS],
  ['Messages → chat completions: the request', MESSAGES_MEMBERS],
  ['Messages → chat completions: blocks of a content', MESSAGES_BLOCKS],
  ['Messages → chat completions: one tool', MESSAGES_TOOL_MEMBERS],
  ['Completions → chat completions: the request', COMPLETION_MEMBERS],
  ['Responses → chat completions and messages: the request', RESPONSES_MEMBERS],
  ['Responses → chat completions and messages: items', RESPONSES_ITEMS],
  ['Responses → chat completions and messages: parts of a content', RESPONSES_PARTS],
]

function memberTable([title, rules]: [title: string, rules: MemberRules]): string {
  const rows = Object.entries(rules).map(([name, { treatment, note }]) =>
    row([`\`${name}\``, WORDS[treatment], note]),
  )
  return [`### ${title}`, '', row(['', '', 'how, or why']), row(['---', '---', '---']), ...rows].join('\n')
}
