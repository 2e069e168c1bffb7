import { assistant, becomes, conversation, type Group, refused, text, user } from './features.ts'

const PNG = 'iVBORw0KGgo='
const image = (source: object) => conversation(user([{ type: 'image', source }]))
const imageUrl = (url: string, more = {}) =>
  conversation(user([{ type: 'image_url', image_url: { url, ...more } }]))
const PART = { chat: ['messages.0.content.0'], messages: ['messages.0.content.0'] }
const URL_SOURCE = { type: 'url', url: 'https://pictures.example/owl.png' }
const DATA_SOURCE = { type: 'base64', media_type: 'image/png', data: PNG }
const PDF = 'JVBERi0xLjQ='
const PDF_SOURCE = { type: 'base64', media_type: 'application/pdf', data: PDF }
const document = (source: object, more = {}) => conversation(user([{ type: 'document', source, ...more }]))

export const mediaFeatures: Group = {
  title: 'Images, documents, sound',
  features: [
    {
      name: 'Image by URL',
      said: { chat: imageUrl(URL_SOURCE.url), messages: image(URL_SOURCE) },
      places: PART,
      expected: {
        'chat:messages': becomes({ 'messages.0.content.0': { type: 'image', source: URL_SOURCE } }),
        'messages:chat': becomes({
          'messages.0.content.0': { type: 'image_url', image_url: { url: URL_SOURCE.url } },
        }),
      },
    },
    {
      name: 'Image in the request (base64)',
      said: { chat: imageUrl(`data:image/png;base64,${PNG}`), messages: image(DATA_SOURCE) },
      places: PART,
      expected: {
        'chat:messages': becomes({ 'messages.0.content.0': { type: 'image', source: DATA_SOURCE } }),
        'messages:chat': becomes({
          'messages.0.content.0': { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
        }),
      },
    },
    {
      name: 'Image of another kind than JPEG, PNG, GIF, WebP',
      said: { chat: imageUrl(`data:image/bmp;base64,${PNG}`) },
      places: PART,
      expected: { 'chat:messages': refused('images must be JPEG, PNG, GIF or WebP') },
    },
    {
      name: 'Image of the assistant',
      said: {
        chat: conversation(
          user('Draw.'),
          assistant([{ type: 'image_url', image_url: { url: URL_SOURCE.url } }]),
          user('Again.'),
        ),
        messages: conversation(
          user('Draw.'),
          assistant([{ type: 'image', source: URL_SOURCE }]),
          user('Again.'),
        ),
      },
      places: { chat: ['messages.1.content.0'], messages: ['messages.1.content.0'] },
      expected: {
        'chat:messages': refused("the assistant's parts of type image_url"),
        'messages:chat': refused("the assistant's blocks of type image"),
      },
    },
    {
      name: 'How closely to look (`detail`)',
      said: { chat: imageUrl(URL_SOURCE.url, { detail: 'low' }) },
      places: { chat: ['messages.0.content.0.image_url.detail'], messages: ['messages.0.content.0.detail'] },
      expected: { 'chat:messages': 'dropped' },
    },
    {
      name: 'Image or document by file id',
      said: {
        chat: conversation(user([{ type: 'file', file: { file_id: 'file-1' } }])),
        messages: image({ type: 'file', file_id: 'file_1' }),
      },
      places: PART,
      expected: { 'chat:messages': refused('file_data'), 'messages:chat': refused('base64 or as a URL') },
      note: 'files are stored at one provider',
    },
    {
      name: 'PDF in the request (base64)',
      said: {
        chat: conversation(
          user([
            { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${PDF}` } },
          ]),
        ),
        messages: document(PDF_SOURCE, { title: 'a' }),
      },
      places: PART,
      expected: {
        'chat:messages': becomes({
          'messages.0.content.0': { type: 'document', source: PDF_SOURCE, title: 'a.pdf' },
        }),
        'messages:chat': becomes({
          'messages.0.content.0': {
            type: 'file',
            file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${PDF}` },
          },
        }),
      },
      note: 'the file name becomes the title',
    },
    {
      name: 'PDF by URL',
      said: { messages: document({ type: 'url', url: 'https://papers.example/a.pdf' }) },
      places: PART,
      expected: { 'messages:chat': refused('base64 or as text') },
      note: 'chat takes documents in the request only',
    },
    {
      name: 'Document of text, with title',
      said: {
        messages: document(
          { type: 'text', media_type: 'text/plain', data: 'It is cold.' },
          { title: 'Notes', context: 'From Bern.' },
        ),
      },
      places: { chat: ['messages.0.content'], messages: PART.messages },
      expected: {
        'messages:chat': becomes({ 'messages.0.content': 'Notes\n\nFrom Bern.\n\nIt is cold.' }),
      },
      note: 'text of the user',
    },
    {
      name: 'Citations of a document requested',
      said: {
        messages: document(
          { type: 'text', media_type: 'text/plain', data: 'It is cold.' },
          { citations: { enabled: true } },
        ),
      },
      places: { chat: ['messages.0.content.0.citations'], messages: ['messages.0.content.0.citations'] },
      expected: { 'messages:chat': 'dropped' },
    },
    {
      name: 'Search results',
      said: {
        messages: conversation(
          user([
            {
              type: 'search_result',
              source: 'https://weather.example',
              title: 'Bern',
              content: [text('It is cold.')],
            },
          ]),
        ),
      },
      places: { chat: ['messages.0.content'], messages: PART.messages },
      expected: {
        'messages:chat': becomes({ 'messages.0.content': 'Bern\nhttps://weather.example\nIt is cold.' }),
      },
      note: 'text of the user',
    },
    {
      name: 'Sound in the conversation',
      said: {
        chat: conversation(user([{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }])),
      },
      places: PART,
      expected: { 'chat:messages': refused('input_audio') },
    },
    {
      name: 'Spoken answer (`audio`, `modalities`)',
      said: { chat: { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } } },
      places: { chat: ['modalities', 'audio'], messages: ['modalities', 'audio'] },
      expected: { 'chat:messages': refused('only text output') },
    },
  ],
}
