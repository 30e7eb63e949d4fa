// The drawing of a graph: rings by distance from the centre, which needs no seconds of simulation. Loaded on use.

import cytoscape from "./vendor/cytoscape.js";

const ZOOM_MOST = 1.8;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function style() {
  const [text, soft, line, accent, bar, panel, warn] = ["--text", "--soft", "--line", "--accent", "--bar", "--panel", "--warn"].map(colour);
  return [
    { selector: "node", style: { "background-color": bar, label: "data(title)", color: text, "font-size": 11, "min-zoomed-font-size": 8, "text-max-width": 130, "text-wrap": "ellipsis", "text-valign": "bottom", "text-margin-y": 3, width: 16, height: 16 } },
    { selector: "node[kind = 'entity']", style: { shape: "diamond", "background-color": warn } },
    { selector: "edge", style: { width: 1.2, "line-color": line, "curve-style": "haystack", opacity: 0.9 } },
    { selector: "node.centre", style: { width: 26, height: 26, "border-width": 3, "border-color": accent } },
    { selector: "node.chosen", style: { "border-width": 3, "border-color": text, "background-color": accent } },
    { selector: "edge.chosen", style: { "line-color": accent, width: 2.5 } },
    { selector: "core", style: { "active-bg-opacity": 0, "selection-box-color": soft, "outside-texture-bg-color": panel } },
  ];
}

/** The library looks for an element of this name before it writes a rule of its own into the page, which the page's
 * policy forbids; the rule stands in style.css. */
function withoutItsStyle() {
  const name = "__________cytoscape_stylesheet";
  if (document.getElementById(name)) return;
  const mark = document.createElement("meta");
  mark.id = name;
  document.head.append(mark);
}

/** `graph`: { nodes, edges } of the API; `onChoose(id)`, `onWalk(id)` are told of a click and of a double click. */
export function drawn(container, graph, { centre, onChoose, onWalk }) {
  withoutItsStyle();
  const known = new Set(graph.nodes.map((node) => node.id));
  const many = graph.nodes.length > 400;
  const cy = cytoscape({
    container,
    elements: {
      nodes: graph.nodes.map((node) => ({ data: { id: node.id, title: node.title, kind: node.kind, hop: node.hop } })),
      edges: graph.edges.filter((edge) => known.has(edge.source) && known.has(edge.target)).map((edge, at) => ({ data: { id: `e${at}`, source: edge.source, target: edge.target } })),
    },
    style: style(),
    layout: { name: "concentric", concentric: (node) => 10 - node.data("hop"), levelWidth: () => 1, minNodeSpacing: 26, animate: false },
    hideEdgesOnViewport: many,
    textureOnViewport: many,
    pixelRatio: many ? 1 : "auto",
    wheelSensitivity: 1,
    boxSelectionEnabled: false,
    autoungrabify: many,
  });
  // A handful of nodes is not blown up to fill the canvas.
  if (cy.zoom() > ZOOM_MOST) {
    cy.zoom(ZOOM_MOST);
    cy.center();
  }
  cy.getElementById(centre).addClass("centre");
  cy.on("tap", "node", (event) => onChoose(event.target.id()));
  cy.on("dbltap", "node", (event) => onWalk(event.target.id()));
  return {
    cy,
    choose(id) {
      cy.elements(".chosen").removeClass("chosen");
      const node = cy.getElementById(id);
      node.addClass("chosen").connectedEdges().addClass("chosen");
      const place = node.renderedPosition();
      if (place && (place.x < 0 || place.y < 0 || place.x > cy.width() || place.y > cy.height())) cy.center(node);
    },
    /** Where a node is on the screen, within the container. */
    place: (id) => cy.getElementById(id).renderedPosition(),
    zoom(factor) {
      cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });
    },
    recolour: () => cy.style(style()),
    end: () => cy.destroy(),
  };
}
