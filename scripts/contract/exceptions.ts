/** A failure of a check that is right, with its reason. */
export interface ContractException {
  reason: string
  /** The class of schemathesis. */
  failure: 'RejectedPositiveData' | 'UnsupportedMethodResponse' | 'UseAfterFree' | 'AcceptedNegativeData'
  status: number
  /** Patterns of the operation's id and of the answer. */
  operation: string
  answer: string
}

/** All failures that `npm run test:contract` does not count. Its report has the number of each. */
export const EXCEPTIONS: readonly ContractException[] = [
  {
    reason:
      'A rule that names what the organization does not have would never hold, and no schema knows the names.',
    failure: 'RejectedPositiveData',
    status: 400,
    operation: '^(policies|tools)\\.',
    answer: 'there is no ',
  },
  {
    reason: 'No schema says of any JSON that its texts hold no NUL, which Postgres does not store.',
    failure: 'RejectedPositiveData',
    status: 400,
    operation: '^(agents|integrations)\\.',
    answer: 'without NUL and halves of characters',
  },
  {
    reason: 'A cursor is opaque: only `next_cursor` of a page is one, and a schema cannot say so.',
    failure: 'RejectedPositiveData',
    status: 400,
    operation: '.',
    answer: 'cursor: is not a cursor of this list',
  },
  {
    reason: 'The interface has no 405: a public path answers 404 for other methods, with the header Allow.',
    failure: 'UnsupportedMethodResponse',
    status: 404,
    operation: '.',
    answer:
      'Route .* not found: this path takes |Agent runs not found|Response compact not found|Passkey (begin|finish) not found',
  },
  {
    reason: 'An item of a list is named by its id, which a schema does not know.',
    failure: 'RejectedPositiveData',
    status: 400,
    operation: '.',
    answer: 'after: is not the id of an item of this list',
  },
  {
    reason: 'The interface answers 400 for a model that does not exist.',
    failure: 'RejectedPositiveData',
    status: 400,
    operation: '^(chat|completions|messages|responses)\\.',
    answer: 'model_not_found|The model .* does not exist',
  },
  {
    reason:
      'Members of an input item depend on its type; the document describes those of messages, outputs and references.',
    failure: 'RejectedPositiveData',
    status: 400,
    operation: '^responses\\.',
    answer: '"message":"input',
  },
  {
    reason:
      "Rules of a vendor for its own members are the provider's: its 400, with `param`, passes unchanged.",
    failure: 'RejectedPositiveData',
    status: 400,
    operation: '^(chat|completions)\\.',
    answer: '"param":',
  },
  {
    reason:
      'Which members a model takes depends on its provider, its prices and its capabilities, which the catalogue describes.',
    failure: 'RejectedPositiveData',
    status: 400,
    operation: '^(chat|completions|messages|responses)\\.',
    answer: '[Tt]h(is|e) model |[Tt]h(is|e) model\\.|another model',
  },
  {
    reason:
      "A message without any text is none in another vendor's protocol, into which the request is translated.",
    failure: 'RejectedPositiveData',
    status: 400,
    operation: '^(chat|completions|messages)\\.',
    answer: 'must have content\\.',
  },
  {
    reason: 'Roles of messages alternate, which a schema cannot say.',
    failure: 'RejectedPositiveData',
    status: 400,
    operation: '^messages\\.',
    answer: 'Roles must alternate',
  },
]
