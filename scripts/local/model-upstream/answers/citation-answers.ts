import { splitIntoPieces } from '../answer-plan.ts'
import { nextIdentifier } from '../identifiers.ts'
import type { JsonRecord } from '../json-value.ts'
import { type AnswerScript, answerScript } from './answer-script.ts'
import { type ChatAnswer, textDeltas } from './chat-answer.ts'
import { type AnswerBlock, serverToolBlock, textBlock, wholeBlock } from './message-answer.ts'

const source = { url: 'https://example.com/owls?page=1', title: 'Owls – a "guide"' }
const claim = 'Owls hunt at night.'
const introduction = 'Here is what I found: '

const documentCitations: JsonRecord[] = [
  {
    type: 'char_location',
    cited_text: 'hunt at night',
    document_index: 0,
    document_title: 'Owls',
    start_char_index: 5,
    end_char_index: 18,
    file_id: null,
  },
  {
    type: 'page_location',
    cited_text: 'at night',
    document_index: 1,
    document_title: null,
    start_page_number: 2,
    end_page_number: 3,
    file_id: null,
  },
]

/** Results of a search; later turns must send the encrypted parts unchanged. */
export function searchResultBlock(id: string): AnswerBlock {
  return wholeBlock({
    type: 'web_search_tool_result',
    tool_use_id: id,
    caller: { type: 'direct' },
    content: [
      {
        type: 'web_search_result',
        ...source,
        encrypted_content: `encrypted.${id}`,
        page_age: 'April 1, 2026',
      },
    ],
  })
}

/** A claim of the answer with the search result that it cites. */
export function citedClaim(id: string): AnswerBlock {
  const citation = {
    type: 'web_search_result_location',
    ...source,
    cited_text: claim,
    encrypted_index: `index.${id}`,
  }
  return textBlock(claim, [citation])
}

function annotated(): ChatAnswer {
  const text = introduction + claim
  const place = { start_index: introduction.length, end_index: text.length }
  const annotations = [{ type: 'url_citation', url_citation: { ...source, ...place } }]
  return {
    deltas: [...textDeltas(splitIntoPieces(text)), { annotations }],
    message: { content: text, annotations },
  }
}

function searched() {
  const id = nextIdentifier('srvtoolu_')
  return {
    content: [
      serverToolBlock(id, 'web_search', { query: 'when do owls hunt?' }),
      searchResultBlock(id),
      textBlock(introduction),
      citedClaim(id),
    ],
    usage: { searches: 1 },
  }
}

function searchFailed() {
  const id = nextIdentifier('srvtoolu_')
  const content = { type: 'web_search_tool_result_error', error_code: 'max_uses_exceeded' }
  return {
    content: [
      serverToolBlock(id, 'web_search', { query: 'owls' }),
      wholeBlock({ type: 'web_search_tool_result', tool_use_id: id, caller: { type: 'direct' }, content }),
      textBlock('I could not search.'),
    ],
    usage: { searches: 0 },
  }
}

/** Scripts about citations and searches, by name; chat completions have both as annotations. */
export const citationAnswers: [string, AnswerScript][] = [
  [
    'citations',
    answerScript(annotated, () => ({
      content: [textBlock(introduction), textBlock(claim, documentCitations)],
    })),
  ],
  ['web-search', answerScript(annotated, searched)],
  [
    'web-search-error',
    answerScript(
      () => ({ deltas: textDeltas(['I could not search.']), message: { content: 'I could not search.' } }),
      searchFailed,
    ),
  ],
]
