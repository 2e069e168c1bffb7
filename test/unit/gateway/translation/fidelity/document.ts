import { join } from 'node:path'
import {
  CHAT_TO_CANONICAL,
  MESSAGES_TO_CANONICAL,
  RESPONSES_TO_CANONICAL,
} from '../../../../../src/gateway/translation/requests/canonical-members.ts'
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
import { contentRows, memberRows, type VendorRow, vendorColumns } from './vendor-tables.ts'
import { type Observation, observeAnswer, observeRequest } from './verdicts.ts'

export const FIDELITY_FILE = join(import.meta.dirname, '../../../../../docs/fidelity.md')

/** The whole of docs/fidelity.md, from the results of the gateway's code on every case. */
export async function fidelityDocument(): Promise<string> {
  const requests = await table(REQUEST_GROUPS, async (feature) => observeRequest(feature))
  const answers = await table(ANSWER_GROUPS, (feature) =>
    observeAnswer(feature, (feature.forms ?? ['whole'])[0] ?? 'whole'),
  )
  const members = MEMBER_TABLES.map(memberTable)
  const vendors = vendorTables()
  return [INTRODUCTION, REQUESTS, requests, ANSWERS, answers, VENDORS, ...vendors, MEMBERS, ...members]
    .join('\n\n')
    .concat('\n')
}

const INTRODUCTION = `# What survives between protocols

<!-- Generated from test/unit/gateway/translation/fidelity by \`npm run generate:fidelity\`; do not edit. -->

Every model can be called with chat completions, messages and legacy completions, whatever protocol its provider has.
After this page you can tell which features of a request and an answer survive a translation. Between equal protocols the
bytes pass unchanged. Otherwise the call is translated, and some features have no equivalent. The page is generated from
tests that run every line through the code that serves calls.

A column names the caller's protocol, then that of the model's provider. Chat → messages is an OpenAI client with a Claude
model; messages → chat is an Anthropic client (or Claude Code) with an OpenAI model. Completions are sent as completions
only to models with the capability \`completions\`, and as a chat to all others.

| | |
|---|---|
| kept | sent unchanged: the same value under the same name |
| translated | sent as the other protocol's equivalent |
| *dropped* | left out: it only tunes the answer, or is specific to one provider |
| **refused** | 400 \`invalid_request_error\` that names the member: its loss would change the meaning of the answer |
| (empty) | does not exist in the caller's protocol |

Translated in both directions: conversations, images, PDFs, function tools and their results, JSON schemas, limits,
reasoning effort, stop reasons and usage. Cache markers and web search also work from chat clients to Claude models.
Available only in the provider's own protocol: signatures of thinking, citations of documents, log probabilities, several
choices, audio, files by id, and tools that run at the provider.`

const REQUESTS = `## Requests

Models differ in their capabilities. A line without a word about the model is about one that does not reason and has JSON
modes. Lines about models that reason are marked, because members that such models refuse are left out.`

const ANSWERS = `## Answers

Whole answers and streams have the same contents: every line is tested in both forms where both exist.`

const VENDORS = `## Every vendor

What each vendor is sent of a request, from the code that makes the request of a route: kept under its name, *dropped* (and named in
\`x-headgate-dropped\`, but for what the gateway removes on every call), **refused** with 400 where no other route takes it, or
translated: under another name, in the path, in another form. Vendors that treat all lines of a table alike share its column. The
lines are about models that do not reason, but for those about reasoning. With \`--allow-member\` a vendor is sent a member as it is
([providers.md](providers.md)).`

const VENDOR_TABLES: ReadonlyArray<[title: string, rows: () => VendorRow[]]> = [
  ['Chat completions at every vendor: the request', () => memberRows('chat_completions')],
  ['Chat completions at every vendor: contents of messages', () => contentRows('chat_completions')],
  ['Messages at every vendor: the request', () => memberRows('messages')],
  ['Messages at every vendor: contents of messages', () => contentRows('messages')],
  ['Responses at every vendor: the request', () => memberRows('responses')],
]

const vendorTables = (): string[] => VENDOR_TABLES.map(([title, rows]) => vendorTable(title, rows()))

function vendorTable(title: string, rows: readonly VendorRow[]): string {
  const columns = vendorColumns(rows)
  const lines = rows.map(({ name, verdicts }) =>
    row([name, ...columns.map(({ index }) => WORDS[verdicts[index] ?? 'changed'])]),
  )
  const head = ['', ...columns.map((column) => column.title)]
  return [`### ${title}`, '', row(head), row(head.map(() => '---')), ...lines].join('\n')
}

const MEMBERS = `## Every member

The treatment of every member, from the tables that translation reads. Members in no table are dropped on translated
calls. \`null\` counts as absent. Completions for a messages provider follow their own table first, then those of chat
completions; so do the members of a response, whose items become turns of messages directly. Responses are always
translated. Members that are not sent to the model (such as \`store\`) are in none of these tables.

Gemini's own protocol is no caller's, so that every call is translated to it. Texts, images, PDFs, other files and audio in
base64, function tools, their results, and signatures of thinking keep their places; media by URL are refused. Completions
follow their own table first, then that of chat completions.`

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
  ['Chat completions → Gemini: the request', CHAT_TO_CANONICAL],
  ['Messages → Gemini: the request', MESSAGES_TO_CANONICAL],
  ['Responses → Gemini: the request', sentMembers(RESPONSES_TO_CANONICAL)],
]

/** Without the members that are not sent to any model. */
function sentMembers(rules: MemberRules): MemberRules {
  return Object.fromEntries(Object.entries(rules).filter(([, { silent }]) => silent !== true))
}

function memberTable([title, rules]: [title: string, rules: MemberRules]): string {
  const rows = Object.entries(rules).map(([name, { treatment, note }]) =>
    row([`\`${name}\``, WORDS[treatment], note]),
  )
  return [`### ${title}`, '', row(['', '', 'how, or why']), row(['---', '---', '---']), ...rows].join('\n')
}
